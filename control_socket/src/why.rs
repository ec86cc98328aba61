//! What decided at a change of upstream, in words: [`rule`]. Tables, JSON and the HTTP endpoint say
//! the same.

use node_lib::control::event::Cause;

use crate::record::Change;

/// The rule that decided, with its figures.
pub fn rule(change: &Change) -> String {
    let silence = change.silence_ms;
    let chosen = change.routes.iter().find(|route| Some(route.rsu) == change.to.map(|to| to.rsu));
    let chosen = chosen.and_then(|route| route.candidates.iter().find(|c| c.is_used));
    let chosen = |who: &str| {
        chosen.map_or_else(String::new, |chosen| {
            format!("; the best of {who} costs {:.2}", chosen.cost)
        })
    };
    let left = match change.cause {
        Cause::First => {
            return format!("first: there was no way before{}", chosen("those usable"));
        }
        Cause::Dead => {
            format!("dead: the upstream had been silent for {silence} ms, and did not answer")
        }
        Cause::Goodbye => "goodbye: the upstream, or the RSU, said that it leaves".to_owned(),
        Cause::Withdrawn => "withdrawn: the upstream said that it has no way any more".to_owned(),
        Cause::Restarted => {
            "restarted: the upstream started again, and forgot its routes".to_owned()
        }
        Cause::Fading => {
            "fading: too many heartbeats and answers of the upstream were missing".to_owned()
        }
        Cause::Predicted => {
            "predicted: by the trend of the signal the new one was about to be stronger".to_owned()
        }
        Cause::Better => {
            "better: the new one had been cheaper by the margin for long enough".to_owned()
        }
        Cause::LinkDown => "link-down: our own radio went down".to_owned(),
    };
    match change.to {
        None => format!("{left}; there was no other"),
        Some(_) => left + &chosen("the others"),
    }
}
