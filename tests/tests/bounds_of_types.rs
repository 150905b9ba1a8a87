//! What users bring needs no more than to be sendable; their datasets work as they are.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use burn::data::dataloader::DataLoader;
use burn::data::dataloader::batcher::Batcher;
use burn::data::dataset::{
    Dataset, DatasetError, InMemDataset, SqliteDataset, SqliteDatasetError, SqliteDatasetStorage,
};
use burn::tensor::Device;
use burn_prefetch::{DataLoaderBuilder, LoadError, PrefetchDataLoader};
use burn_prefetch_tests::{Collect, Numbers, Rows, chunks, for_each_worker_count, guarded, pass};
use serde::{Deserialize, Serialize};

/// Sendable, and nothing else: not `Clone`, not `Debug`, not `Sync`.
struct Bare(Cell<usize>);

struct BareData;

impl Dataset<Bare> for BareData {
    fn get(&self, index: usize) -> Result<Bare, DatasetError> {
        Ok(Bare(Cell::new(index)))
    }

    fn len(&self) -> usize {
        11
    }
}

/// As bare as its items.
struct BareBatch(Vec<Bare>);

struct BareBatcher;

impl Batcher<Bare, BareBatch> for BareBatcher {
    fn batch(&self, items: Vec<Bare>, _: &Device) -> BareBatch {
        BareBatch(items)
    }
}

#[test]
fn items_and_batches_need_only_be_sendable() {
    for_each_worker_count(|workers| {
        let loader = DataLoaderBuilder::new(BareBatcher)
            .num_workers(workers)
            .batch_size(4);
        let loader = loader.build(BareData);
        let batches = pass(loader.as_ref());
        let numbers = |batch: &BareBatch| batch.0.iter().map(|item| item.0.get()).collect();
        assert_eq!(
            batches.iter().map(numbers).collect::<Vec<Vec<_>>>(),
            chunks(11, 4)
        );
    });
}

#[test]
fn a_loader_may_be_shared_whatever_its_batches_are() {
    fn shared<T: Send + Sync + 'static>() -> PhantomData<T> {
        PhantomData
    }
    let _ = shared::<PrefetchDataLoader<Cell<usize>>>();
    let _ = shared::<Arc<dyn DataLoader<Cell<usize>>>>();
    let _ = shared::<DatasetError>();
    let _ = shared::<LoadError>();
}

#[test]
fn a_dataset_may_be_boxed_or_shared_or_in_memory() {
    for_each_worker_count(|workers| {
        let builder = || {
            DataLoaderBuilder::new(Collect)
                .num_workers(workers)
                .batch_size(2)
        };
        let shared: Arc<dyn Dataset<usize>> = Arc::new(Numbers(5));
        assert_eq!(pass(builder().build(shared).as_ref()), chunks(5, 2));
        let boxed: Box<dyn Dataset<usize>> = Box::new(Numbers(5));
        assert_eq!(pass(builder().build(boxed).as_ref()), chunks(5, 2));
        let memory = InMemDataset::new((0..5).collect());
        assert_eq!(pass(builder().build(memory).as_ref()), chunks(5, 2));
    });
}

/// One function for both loaders: the import decides.
macro_rules! a_burn_users_code {
    ($name:ident, $builder:path) => {
        fn $name(workers: usize) -> Arc<dyn DataLoader<burn::tensor::Tensor<1>>> {
            use $builder as DataLoaderBuilder;
            DataLoaderBuilder::new(Rows)
                .batch_size(4)
                .shuffle(42)
                .num_workers(workers)
                .set_device(Device::default())
                .build(InMemDataset::new((0..10).collect()))
        }
    };
}

a_burn_users_code!(with_burns_loader, burn::data::dataloader::DataLoaderBuilder);
a_burn_users_code!(with_this_one, burn_prefetch::DataLoaderBuilder);

#[test]
fn a_burn_user_changes_one_import() {
    for_each_worker_count(|workers| {
        let (burns, ours) = (with_burns_loader(workers), with_this_one(workers));
        assert_eq!(burns.num_items(), ours.num_items());
        let sum = |loader: &dyn DataLoader<burn::tensor::Tensor<1>>| {
            pass(loader)
                .into_iter()
                .map(|batch| batch.sum().into_scalar::<f32>())
                .sum::<f32>()
        };
        assert_eq!(sum(burns.as_ref()).to_bits(), 45_f32.to_bits());
        assert_eq!(sum(ours.as_ref()).to_bits(), 45_f32.to_bits());
    });
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Row {
    id: usize,
    name: String,
}

fn row(id: usize) -> Row {
    Row {
        id,
        name: format!("row {id}"),
    }
}

#[test]
fn burns_sqlite_dataset_works_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let storage = SqliteDatasetStorage::from_file(folder.path().join("rows.db"));
    let mut writer = storage.writer::<Row>(true).unwrap();
    for id in 0..23 {
        writer.write("train", &row(id)).unwrap();
    }
    writer.set_completed().unwrap();
    let file = storage.db_file();
    for_each_worker_count(move |workers| {
        for batched in [false, true] {
            let data: SqliteDataset<Row> = SqliteDataset::from_db_file(&file, "train").unwrap();
            let mut builder = DataLoaderBuilder::new(Collect)
                .num_workers(workers)
                .batch_size(5);
            if batched {
                builder = builder.batched();
            }
            let loader = builder.build(data);
            for _ in 0..2 {
                let rows = pass(loader.as_ref()).concat();
                assert_eq!(rows, (0..23).map(row).collect::<Vec<_>>());
            }
        }
    });
}

#[test]
fn an_error_type_of_ones_own_is_found_again() {
    /// Burn's `SQLite` errors, without a database.
    struct Failing;
    impl Dataset<usize, SqliteDatasetError> for Failing {
        fn get(&self, _: usize) -> Result<usize, SqliteDatasetError> {
            Err(SqliteDatasetError::Other("no such row"))
        }
        fn len(&self) -> usize {
            3
        }
    }
    guarded(|| {
        let loader = DataLoaderBuilder::new(Collect)
            .num_workers(2)
            .build(Failing);
        let error = loader.iter().next().unwrap().unwrap_err();
        let Some(LoadError::Dataset { source, .. }) = LoadError::of(&error) else {
            panic!("{error:?}");
        };
        assert!(matches!(
            source.downcast_ref(),
            Some(SqliteDatasetError::Other("no such row"))
        ));
    });
}
