//! Many at once: threads of one handle, and handles as other processes would have them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use demur_ledger::{BudgetName, Ledger, Options};

use crate::place::{EXHAUSTED, Place, answer, code, replayed, request, spend, spent, with_budget};

crate::on_every_store!(
    two_handles_see_each_other,
    two_handles_never_overspend_together,
    exactly_one_of_64_wins_the_last_unit,
    a_hundred_threads_charge_exactly_what_fits,
    who_waits_is_told_for_whom_and_gives_up_in_the_end,
);

fn two_handles_see_each_other(place: &Place) {
    let first = with_budget(place, "1");
    let second = place.open();
    answer(&first, request("0.4").id("monday"), b"from the first");
    assert_eq!(replayed(&second, request("0.4").id("monday")).1, b"from the first");
    answer(&second, request("0.4").data_version("1"), b"from the second");
    assert_eq!(replayed(&first, request("0.4").data_version("1")).1, b"from the second");
    assert_eq!(code(&first, request("0.3")), EXHAUSTED);
    assert_eq!(code(&second, request("0.3")), EXHAUSTED);
    assert_eq!(first.book().unwrap(), second.book().unwrap());
    assert_eq!(Ledger::look(&place.location).unwrap(), first.book().unwrap());
}

fn two_handles_never_overspend_together(place: &Place) {
    let handles = [with_budget(place, "1"), place.open()];
    let admitted = (0..30).filter(|n| handles[n % 2].charge(request("0.1")).is_ok()).count();
    assert_eq!(admitted, 10);
    assert_eq!(spent(&handles[0], BudgetName::whole("visits")), "ε = 1");
}

fn exactly_one_of_64_wins_the_last_unit(place: &Place) {
    let first = with_budget(place, "10");
    spend(&first, request("9"));
    let handles: Vec<Ledger> = std::iter::once(first).chain((1..4).map(|_| place.open())).collect();
    let start = Barrier::new(64);
    let won = std::thread::scope(|scope| {
        let ask = |n: usize| {
            let (handle, start) = (&handles[n % handles.len()], &start);
            scope.spawn(move || {
                start.wait();
                match handle.charge(request("1")) {
                    Ok(_) => true,
                    Err(error) => {
                        assert_eq!(error.code(), EXHAUSTED);
                        false
                    }
                }
            })
        };
        let threads: Vec<_> = (0..64).map(ask).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|won| *won).count()
    });
    assert_eq!(won, 1);
    assert_eq!(spent(&handles[0], BudgetName::whole("visits")), "ε = 10");
}

fn a_hundred_threads_charge_exactly_what_fits(place: &Place) {
    let first = with_budget(place, "3");
    let handles: Vec<Ledger> = std::iter::once(first).chain((1..5).map(|_| place.open())).collect();
    let admitted = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for n in 0..100 {
            let (handle, admitted) = (&handles[n % handles.len()], &admitted);
            scope.spawn(move || {
                loop {
                    match handle.charge(request("0.01")) {
                        Ok(_) => admitted.fetch_add(1, Ordering::Relaxed),
                        Err(error) => return assert_eq!(error.code(), EXHAUSTED),
                    };
                }
            });
        }
    });
    assert_eq!(admitted.into_inner(), 300);
    drop(handles);
    let book = place.open().book().unwrap();
    assert_eq!(book.budget(&BudgetName::whole("visits")).unwrap().charges, 300);
    // The budget, the charges, and a checkpoint among them.
    assert_eq!(book.head().sequence, 302);
}

fn who_waits_is_told_for_whom_and_gives_up_in_the_end(place: &Place) {
    drop(with_budget(place, "1"));
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = told.clone();
    let options = Options {
        patience: Duration::from_millis(1500),
        on_wait: Arc::new(move |holder| listener.lock().unwrap().push(holder.to_owned())),
        ..Options::default()
    };
    let ledger = Ledger::open(&place.location, options).unwrap();
    let before = ledger.book().unwrap();
    let mut holder = place.store(Arc::new(|_| {}));
    holder.begin().unwrap();
    let start = Instant::now();
    let error = ledger.charge(request("0.5")).unwrap_err();
    assert!(error.is_busy() && error.code() == "ledger.busy", "{error}");
    assert!(start.elapsed() >= Duration::from_millis(1400), "{:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    let process = std::process::id().to_string();
    assert!(
        error.to_string().contains(&process) && error.to_string().contains("nothing was charged"),
        "{error}"
    );
    let told = told.lock().unwrap().clone();
    assert!(told.len() == 1 && told[0].contains(&process), "{told:?}");
    // Nothing was charged, and the handle is as good as before.
    holder.abandon().unwrap();
    assert_eq!(ledger.book().unwrap(), before);
    spend(&ledger, request("1"));
}
