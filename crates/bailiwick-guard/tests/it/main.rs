//! The journal as its users see it.
