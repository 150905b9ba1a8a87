//! What the benches share: paired measuring, the two contenders, and the data they load.
//!
#![doc = include_str!("../README.md")]

mod census;
mod cifar;
mod effort;
mod items;
mod loaders;
mod measure;
mod os;
mod pictures;
mod report;

pub use census::{Census, Counted};
pub use cifar::{Allocator, contest};
pub use effort::Effort;
pub use items::{Collect, Items, Which};
pub use loaders::{Contender, Setup, Window, epoch, epoch_with};
pub use measure::{Ratio, Run, Sample, Series, interleaved, real, timed};
pub use pictures::{ByteBatch, Picture, PictureBatch, PictureBatcher, PictureRows, Pictures};
pub use report::Report;
