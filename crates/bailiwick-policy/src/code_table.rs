//! One table of stable codes: the enum, its texts and its meanings, so that they cannot drift apart.

/// Makes an enum of codes from rows of `Variant "text": "meaning";`.
#[macro_export]
macro_rules! code_table {
    ($(#[$about:meta])+ $name:ident { $($variant:ident $text:literal : $meaning:literal;)+ }) => {
        $(#[$about])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum $name { $(#[doc = $meaning] $variant,)+ }

        impl $name {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The stable text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// What it means, in one line.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
