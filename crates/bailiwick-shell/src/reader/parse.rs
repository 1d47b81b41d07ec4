//! From text to syntax tree, within bounds that keep the parser fast and its stack small.
//!
//! The parser takes time exponential in the depth of parentheses that are never closed, and stack proportional to
//! any depth; so both are counted before it starts.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brush_parser::{ParserOptions, SourceInfo, Token, ast, parse_tokens, uncached_tokenize_str};

use super::MAX_TEXT;

/// How deep parentheses may nest.
const MAX_PARENTHESES: usize = 6;
/// How many words may open a block.
const MAX_BLOCKS: usize = 400;
/// With more openers than this, the parser gets a stack of its own.
const FEW_OPENERS: usize = 120;
const LARGE_STACK: usize = 256 * 1024 * 1024;

/// The program that a text is.
///
/// # Errors
/// Why it cannot be read.
pub fn program(text: &str) -> Result<ast::Program, &'static str> {
    if text.len() > MAX_TEXT {
        return Err("it is too long to be read");
    }
    if text.contains('\0') {
        return Err("it holds a NUL character");
    }
    let openers = text.bytes().filter(|byte| matches!(byte, b'(' | b'{' | b'`' | b'[')).count();
    if openers <= FEW_OPENERS {
        return guarded(text);
    }
    let owned = text.to_owned();
    let thread = std::thread::Builder::new().stack_size(LARGE_STACK).spawn(move || guarded(&owned));
    match thread.map(std::thread::JoinHandle::join) {
        Ok(Ok(parsed)) => parsed,
        Ok(Err(_)) | Err(_) => Err("it could not be read"),
    }
}

fn guarded(text: &str) -> Result<ast::Program, &'static str> {
    catch_unwind(AssertUnwindSafe(|| parse(text))).unwrap_or(Err("it could not be read"))
}

fn parse(text: &str) -> Result<ast::Program, &'static str> {
    let options = ParserOptions::default();
    let tokens = uncached_tokenize_str(text, &options.tokenizer_options());
    let tokens = tokens.map_err(|_| "it does not parse as shell text")?;
    check_nesting(&tokens)?;
    parse_tokens(&tokens, &options, &SourceInfo::default()).map_err(|_| "it does not parse as shell text")
}

fn check_nesting(tokens: &[Token]) -> Result<(), &'static str> {
    let (mut depth, mut blocks) = (0_usize, 0_usize);
    for token in tokens {
        match token {
            Token::Operator(operator, _) if operator.contains('(') => depth += operator.matches('(').count(),
            Token::Operator(operator, _) if operator.contains(')') => {
                depth = depth.saturating_sub(operator.matches(')').count());
            }
            Token::Word(word, _) if opens_block(word) => blocks += 1,
            Token::Operator(..) | Token::Word(..) => {}
        }
        if depth > MAX_PARENTHESES || blocks > MAX_BLOCKS {
            return Err("it nests too deep");
        }
    }
    Ok(())
}

fn opens_block(word: &str) -> bool {
    matches!(word, "if" | "while" | "until" | "for" | "case" | "select" | "{" | "!" | "[[")
}
