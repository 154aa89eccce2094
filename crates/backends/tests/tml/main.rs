//! TML: evaluation rules, padding, and compiled programs against each other.

mod batched;
mod compiled;
mod evaluation;
mod examples;
mod generator;
#[path = "../support/guard.rs"]
mod guard;
#[path = "../support/random.rs"]
mod random;
#[path = "../support/scheduled.rs"]
mod scheduled;
#[path = "../support/schedules.rs"]
mod schedules;

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}
