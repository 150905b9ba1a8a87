//! Iterators over one loader are independent: zipped, nested, kept unread, on several threads.

use std::thread;

use burn_prefetch_tests::{Numbers, chunks, for_each_worker_count, loader, pass};

const LENGTHS: [usize; 3] = [9, 101, 1000];

#[test]
fn two_iterators_read_in_step() {
    for_each_worker_count(|workers| {
        for len in LENGTHS {
            let loader = loader(workers).build(Numbers(len));
            let mut count = 0;
            for (left, right) in loader.iter().zip(loader.iter()) {
                assert_eq!((left.unwrap(), right.unwrap()), (vec![count], vec![count]));
                count += 1;
            }
            assert_eq!(count, len);
        }
    });
}

#[test]
fn two_iterators_read_in_step_with_the_narrowest_window() {
    for_each_worker_count(|workers| {
        for window in [0, 1] {
            let loader = loader(workers).prefetch(window).build(Numbers(101));
            assert_eq!(loader.iter().zip(loader.iter()).count(), 101);
        }
    });
}

#[test]
fn a_whole_pass_fits_inside_an_open_one() {
    for_each_worker_count(|workers| {
        for len in LENGTHS {
            let loader = loader(workers).build(Numbers(len));
            let mut outer = loader.iter();
            assert_eq!(outer.next().unwrap().unwrap(), [0]);
            assert_eq!(pass(loader.as_ref()), chunks(len, 1));
            let rest: Vec<_> = outer.map(Result::unwrap).collect();
            assert_eq!(rest, chunks(len, 1)[1..]);
        }
    });
}

#[test]
fn a_pass_inside_every_step_of_another() {
    for_each_worker_count(|workers| {
        let loader = loader(workers).batch_size(2).shuffle(1).build(Numbers(20));
        let steps = loader.iter().map(|_| pass(loader.as_ref()).len());
        assert_eq!(steps.collect::<Vec<_>>(), [10; 10]);
    });
}

#[test]
fn iterators_that_are_kept_and_never_read_hold_nobody_up() {
    for_each_worker_count(|workers| {
        let loader = loader(workers).build(Numbers(1000));
        let unread: Vec<_> = (0..10).map(|_| loader.iter()).collect();
        assert_eq!(pass(loader.as_ref()), chunks(1000, 1));
        for iterator in unread {
            let found: Vec<_> = iterator.map(Result::unwrap).collect();
            assert_eq!(found, chunks(1000, 1), "an unread iterator is still whole");
        }
    });
}

#[test]
fn several_threads_read_one_loader() {
    for_each_worker_count(|workers| {
        let loader = loader(workers).batch_size(3).build(Numbers(100));
        thread::scope(|scope| {
            let read = || (0..10).for_each(|_| assert_eq!(pass(loader.as_ref()), chunks(100, 3)));
            for _ in 0..4 {
                scope.spawn(read);
            }
        });
    });
}

#[test]
fn each_of_several_iterators_is_its_own_epoch() {
    for_each_worker_count(|workers| {
        let shuffled = || loader(workers).batch_size(3).shuffle(4).build(Numbers(30));
        let (one, other) = (shuffled(), shuffled());
        let in_turn = [pass(one.as_ref()), pass(one.as_ref())];
        let (first, second) = (other.iter(), other.iter());
        let late: Vec<_> = second.map(Result::unwrap).collect();
        let early: Vec<_> = first.map(Result::unwrap).collect();
        assert_eq!([early, late], in_turn);
    });
}

#[test]
fn a_dataset_may_read_another_loader() {
    use burn::data::dataloader::DataLoader;
    use burn_prefetch_tests::Hooked;
    use std::sync::Arc;

    for_each_worker_count(|workers| {
        let inner: Arc<dyn DataLoader<Vec<usize>>> = loader(workers).build(Numbers(12));
        let nested = Hooked::new(8, move |_| assert_eq!(pass(inner.as_ref()), chunks(12, 1)));
        let outer = loader(workers).batch_size(2).build(nested);
        assert_eq!(pass(outer.as_ref()), chunks(8, 2));
    });
}

#[test]
fn a_dataset_may_read_the_loader_that_it_belongs_to() {
    use burn::data::dataloader::DataLoader;
    use burn_prefetch_tests::Hooked;
    use std::sync::{Arc, OnceLock, Weak};

    for_each_worker_count(|workers| {
        let itself: Arc<OnceLock<Weak<dyn DataLoader<Vec<usize>>>>> = Arc::default();
        let known = Arc::clone(&itself);
        // Item 0 reads the items from 1 on, through a slice of the same family.
        let nested = Hooked::new(9, move |index| {
            if index == 0 {
                let loader = known.get().expect("set before the first pass").upgrade();
                let rest = loader.expect("the loader lives during a pass").slice(1, 9);
                assert_eq!(pass(rest.as_ref()).concat(), (1..9).collect::<Vec<_>>());
            }
        });
        let outer = loader(workers).batch_size(3).build(nested);
        assert!(itself.set(Arc::downgrade(&outer)).is_ok());
        assert_eq!(pass(outer.as_ref()), chunks(9, 3));
    });
}
