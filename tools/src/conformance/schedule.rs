//! Runs independent tasks, some at a time, each within a time limit.
//!
//! A task runs in a thread of its own. One that panics gives its message; one that is late
//! is given up, and its thread is left behind, because a thread cannot be stopped: it ends
//! with the process.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// Parsers, passes and LLVM recurse; what they are given may be as deep as they allow.
const STACK_BYTES: usize = 256 << 20;

/// The results of the tasks in their order; of one without a result, the reason.
pub(super) fn run_all<R: Send + 'static>(
    tasks: Vec<Box<dyn FnOnce() -> R + Send>>,
    jobs: usize,
    time_limit: Duration,
) -> Vec<Result<R, String>> {
    let mut results: Vec<Option<Result<R, String>>> = tasks.iter().map(|_| None).collect();
    let (sender, receiver) = mpsc::channel();
    let mut waiting = tasks.into_iter().enumerate();
    let mut running: Vec<(usize, Instant)> = Vec::new();
    loop {
        while running.len() < jobs.max(1)
            && let Some((number, task)) = waiting.next()
        {
            let sender = sender.clone();
            let work = move || {
                let result = catch_unwind(AssertUnwindSafe(task)).map_err(|payload| {
                    let text = payload.downcast_ref::<&str>().map(|text| text.to_string());
                    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
                    format!("a panic: {}", text.unwrap_or_else(|| "unknown".to_string()))
                });
                // Nobody listens for a task that was given up.
                let _ = sender.send((number, result));
            };
            match thread::Builder::new().stack_size(STACK_BYTES).spawn(work) {
                Ok(_) => running.push((number, Instant::now() + time_limit)),
                Err(error) => results[number] = Some(Err(format!("no thread: {error}"))),
            }
        }
        let Some(&(_, deadline)) = running.iter().min_by_key(|(_, deadline)| *deadline) else {
            break;
        };
        let wait = deadline.saturating_duration_since(Instant::now());
        if let Ok((number, result)) = receiver.recv_timeout(wait)
            && results[number].is_none()
        {
            results[number] = Some(result);
            running.retain(|(other, _)| *other != number);
        }
        let now = Instant::now();
        running.retain(|(number, deadline)| {
            let late = *deadline <= now;
            if late {
                let text = format!("nothing within {} s", time_limit.as_secs_f64());
                results[*number] = Some(Err(text));
            }
            !late
        });
    }
    let missing = || Err("no result".to_string());
    results.into_iter().map(|result| result.unwrap_or_else(missing)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_order() {
        let tasks = (0..20u64).map(|number| {
            let task = move || {
                thread::sleep(Duration::from_millis(20 - number));
                number
            };
            Box::new(task) as Box<dyn FnOnce() -> u64 + Send>
        });
        let results = run_all(tasks.collect(), 4, Duration::from_secs(60));
        let expected: Vec<_> = (0..20).map(Ok).collect();
        assert_eq!(results, expected);
    }

    #[test]
    fn a_panic_and_a_late_task_harm_no_other() {
        let tasks: Vec<Box<dyn FnOnce() -> u64 + Send>> = vec![
            Box::new(|| panic!("no {}", 1)),
            Box::new(|| {
                thread::sleep(Duration::from_secs(1000));
                0
            }),
            Box::new(|| 7),
        ];
        let results = run_all(tasks, 1, Duration::from_secs(2));
        let expected =
            [Err("a panic: no 1".to_string()), Err("nothing within 2 s".to_string()), Ok(7)];
        assert_eq!(results, expected);
    }
}
