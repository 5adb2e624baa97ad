//! Any text is read as a filter or refused without panic; where it is refused, the place is in
//! it and can be shown; what was read gives the same answer for a run as for its steps.

#![no_main]

use agent_trace_analysis::filter::Filter;
use agent_trace_model::step::{Message, Step, StepKind};
use agent_trace_model::story::Story;
use agent_trace_model::{Outcome, RunId, Stream, Verdict};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    // What comes after the first zero byte is a body to search.
    let cut = input.iter().position(|byte| *byte == 0);
    let (text, body) = input.split_at(cut.unwrap_or(input.len()));
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    match Filter::parse(text, 1_796_040_000_000_000_000) {
        Err(error) => {
            assert!(text.is_char_boundary(error.at));
            assert!(error.column <= text.chars().count() + 1);
            let caret = error.caret();
            assert_eq!(caret.lines().count(), 2);
            assert!(!caret.lines().any(|line| line.chars().any(char::is_control)));
        }
        Ok(filter) => {
            let story = run(body);
            let step = filter.matches_step(&story, Verdict::Unjudged, &story.steps[0]);
            assert_eq!(step, filter.matches_run(&story, Verdict::Unjudged));
            // Without case and without what `\` and `u` make of it, the words are there.
            if step {
                let body = String::from_utf8_lossy(body).to_ascii_lowercase();
                for words in filter.words() {
                    let mut words = words.iter().map(|word| word.to_ascii_lowercase());
                    assert!(words.any(|word| body.contains(&word)));
                }
            }
        }
    }
});

fn run(body: &[u8]) -> Story {
    let message = Message {
        text: body.to_vec(),
        length: body.len() as u64,
        ..Message::default()
    };
    let step = Step {
        number: 1,
        session: 0,
        turn: None,
        kind: StepKind::Request,
        from: Stream::ClientToServer,
        method: Some("tools/call".into()),
        target: Some("tool".into()),
        id: None,
        request: Some(message.clone()),
        response: Some(message),
        exchange: 0,
        status: None,
        finish: None,
        rounds: 1,
        wall: 0,
        duration: None,
        progress: 0,
        cancel_sent: false,
        outcome: Outcome::Ok,
    };
    Story {
        id: RunId::from_digest([1; 16]),
        aliases: Vec::new(),
        workspace: String::new(),
        project: None,
        task: None,
        sessions: Vec::new(),
        turns: Vec::new(),
        steps: vec![step],
    }
}
