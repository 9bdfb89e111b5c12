//! Work by key: coalesced, never two at a time for one key, and again after a while when it failed.
//!
//! A trigger marks a key; however often it is marked before its turn comes, it is one turn. A key that is marked during
//! its turn gets another one. This is all the scheduling that a level-triggered controller needs.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    future::Future,
    hash::Hash,
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

/// Keys that are due. Cheap to clone; bounded by the number of keys there are.
#[derive(Debug)]
pub struct Due<K> {
    marked: Arc<Mutex<HashSet<K>>>,
    ring: Arc<Notify>,
}

impl<K> Clone for Due<K> {
    fn clone(&self) -> Self {
        Self {
            marked: Arc::clone(&self.marked),
            ring: Arc::clone(&self.ring),
        }
    }
}

impl<K> Default for Due<K> {
    fn default() -> Self {
        Self {
            marked: Arc::default(),
            ring: Arc::default(),
        }
    }
}

impl<K: Clone + Eq + Hash> Due<K> {
    pub fn mark(&self, key: K) {
        self.mark_all([key]);
    }

    pub fn mark_all(&self, keys: impl IntoIterator<Item = K>) {
        self.marked.lock().extend(keys);
        self.ring.notify_one();
    }

    /// Everything that is marked; it no longer is.
    pub fn take(&self) -> HashSet<K> {
        std::mem::take(&mut *self.marked.lock())
    }

    pub fn len(&self) -> usize {
        self.marked.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.marked.lock().is_empty()
    }

    /// Until something is marked. Only one waits at a time.
    pub async fn wait(&self) {
        self.ring.notified().await;
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nothing more to do until it is marked again.
    Done,
    /// Look again after that time.
    Again(Duration),
    /// It failed; look again after a while that grows with every failure.
    Failed,
}

const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// The pause after so many failures in a row.
fn retry_after(failures: u32) -> Duration {
    FIRST_RETRY
        .saturating_mul(1 << failures.saturating_sub(1).min(16))
        .min(LAST_RETRY)
}

/// Gives every marked key its turn, `concurrency` at a time, until `stop`. Turns that are under way are finished.
pub async fn run<K, F, Fut>(due: Due<K>, concurrency: usize, stop: CancellationToken, turn: F)
where
    K: Clone + Eq + Hash + Ord,
    F: Fn(K) -> Fut,
    Fut: Future<Output = Turn>,
{
    let mut waiting = BTreeSet::<(u64, K)>::new();
    let mut place = HashMap::<K, u64>::new();
    let mut number = 0_u64;
    let mut running = HashSet::<K>::new();
    let mut later = BTreeSet::<(Instant, K)>::new();
    let mut failures = HashMap::<K, u32>::new();
    let mut turns = FuturesUnordered::new();
    loop {
        let mut admit = |key: K, waiting: &mut BTreeSet<(u64, K)>| {
            if !place.contains_key(&key) {
                number += 1;
                place.insert(key.clone(), number);
                waiting.insert((number, key));
            }
        };
        for key in due.take() {
            admit(key, &mut waiting);
        }
        let now = Instant::now();
        while let Some((at, _)) = later.first() {
            if *at > now {
                break;
            }
            if let Some((_, key)) = later.pop_first() {
                admit(key, &mut waiting);
            }
        }
        let next = waiting
            .iter()
            .filter(|(_, key)| !running.contains(key))
            .take(concurrency.saturating_sub(running.len()))
            .cloned()
            .collect::<Vec<_>>();
        for (order, key) in next {
            waiting.remove(&(order, key.clone()));
            place.remove(&key);
            running.insert(key.clone());
            let future = turn(key.clone());
            turns.push(async move { (key, future.await) });
        }
        let wake = later.first().map(|(at, _)| *at);
        tokio::select! {
            () = stop.cancelled() => break,
            () = due.wait() => {}
            () = sleep_until(wake) => {}
            Some((key, outcome)) = turns.next(), if !turns.is_empty() => {
                running.remove(&key);
                match outcome {
                    Turn::Done => {
                        failures.remove(&key);
                    }
                    Turn::Again(after) => {
                        failures.remove(&key);
                        later.insert((Instant::now() + after, key));
                    }
                    Turn::Failed => {
                        let count = failures.entry(key.clone()).or_default();
                        *count = count.saturating_add(1);
                        later.insert((Instant::now() + retry_after(*count), key));
                    }
                }
            }
        }
    }
    while turns.next().await.is_some() {}
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_back_off_to_a_bound() {
        assert_eq!(retry_after(1), Duration::from_millis(100));
        assert_eq!(retry_after(2), Duration::from_millis(200));
        assert_eq!(retry_after(60), LAST_RETRY);
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_marked_often_has_one_turn_at_a_time() {
        let due = Due::<u32>::default();
        let stop = CancellationToken::new();
        let state = Arc::new(Mutex::new((0_u32, 0_u32, 0_u32)));
        let seen = Arc::clone(&state);
        let again = due.clone();
        let ended = stop.clone();
        for _ in 0..5 {
            due.mark(1);
        }
        run(due, 8, stop, move |key| {
            let (seen, again, ended) = (Arc::clone(&seen), again.clone(), ended.clone());
            async move {
                {
                    let mut seen = seen.lock();
                    seen.0 += 1;
                    seen.1 += 1;
                    seen.2 = seen.2.max(seen.1);
                }
                if seen.lock().0 == 1 {
                    again.mark(key);
                } else {
                    ended.cancel();
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
                seen.lock().1 -= 1;
                Turn::Done
            }
        })
        .await;
        let (turns, _, most) = *state.lock();
        assert_eq!((turns, most), (2, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failed_turn_comes_again() {
        let due = Due::<u32>::default();
        let stop = CancellationToken::new();
        let count = Arc::new(Mutex::new(0));
        let (counted, ended) = (Arc::clone(&count), stop.clone());
        due.mark(7);
        let began = Instant::now();
        run(due, 2, stop, move |_| {
            let (counted, ended) = (Arc::clone(&counted), ended.clone());
            async move {
                *counted.lock() += 1;
                if *counted.lock() == 4 {
                    ended.cancel();
                }
                Turn::Failed
            }
        })
        .await;
        assert_eq!(*count.lock(), 4);
        assert_eq!(began.elapsed(), Duration::from_millis(700));
    }
}
