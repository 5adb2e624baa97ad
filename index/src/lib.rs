//! What is derived from journals: runs, their grouping, and the questions about them.
pub mod engine;
