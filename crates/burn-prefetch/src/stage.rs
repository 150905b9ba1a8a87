//! A device as batches get there: its slots, and the one stream that uploads to it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use burn_prefetch_engine::{BoxError, Lifetime, Pool, PoolConfig};

use crate::burn::{AllocationProperty, Bytes, DType, Device, StreamId, TensorData};
use crate::config_error::ConfigError;
use crate::host_batch::Host;
use crate::slots::{Member, Pin, Slots, StagingStats};

/// `CubeCL` starts its work, and counts on what it has uploaded, by itself after a copy of more,
const LARGE: usize = 10 << 20;

/// after so many bytes in all, and after so many tensors (cubecl-server 0.11.3, `memory_management`).
const MANY_BYTES: usize = 64 << 20;
const MANY: usize = 64;

/// How long the end of an uploader waits for an upload that does not return.
const GRACE: Duration = Duration::from_secs(5);

/// How a loader stages its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StageSettings {
    pub(crate) pin_memory: bool,
    pub(crate) device_prefetch: usize,
    pub(crate) pinned_budget: Option<u64>,
    pub(crate) device_budget: Option<u64>,
    /// Whether there are workers; without them batches are uploaded on the thread that wants them.
    pub(crate) workers: bool,
}

/// What the loaders of this process share for one device that has streams and page-locked memory.
struct Port {
    device: Device,
    stream: StreamId,
    uploader: Arc<Pool>,
    slots: Arc<Slots>,
}

/// A loader's way to its device.
pub(crate) struct Stage {
    device: Device,
    settings: StageSettings,
    /// First of all to go: the slots' budget.
    _member: Member,
    slots: Arc<Slots>,
    port: Option<Arc<Port>>,
}

impl Stage {
    /// The way to a device. Starts no thread.
    pub(crate) fn to(device: &Device, settings: StageSettings) -> Result<Self, ConfigError> {
        let port = Port::of(device)?;
        let slots = match &port {
            Some(port) => Arc::clone(&port.slots),
            None => Slots::new(None),
        };
        Ok(Self {
            device: device.clone(),
            settings,
            _member: slots.join(settings.pinned_budget),
            slots,
            port,
        })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The device on which batches are assembled that are to be moved to this one; `None` where they are
    /// made where they stay.
    pub(crate) fn host_device(&self) -> Option<Device> {
        self.port.as_ref().map(|_| host_device())
    }

    /// Where host batches come from.
    pub(crate) fn host(&self) -> Host {
        Host::new(Arc::clone(&self.slots), self.settings.pin_memory)
    }

    /// The thread that uploads; `None` where whoever assembles does.
    pub(crate) fn uploader(&self) -> Option<burn_prefetch_engine::Uploader> {
        let port = self.port.as_ref().filter(|_| self.settings.workers)?;
        Some(burn_prefetch_engine::Uploader {
            pool: Arc::clone(&port.uploader),
            ahead: self.settings.device_prefetch,
            ahead_bytes: self.settings.device_budget,
        })
    }

    /// Waits until the uploader has let go of readers that have left, so that whoever drops the last of
    /// a device's loaders finds everything given back.
    pub(crate) fn settle(&self) {
        if let Some(port) = &self.port {
            port.uploader.settle(GRACE);
        }
    }

    pub(crate) fn stats(&self) -> StagingStats {
        self.slots.stats()
    }

    /// Runs `upload`, which hands slots of these `sizes` to the device, and has the device begin.
    pub(crate) fn upload<T>(
        &self,
        sizes: impl Iterator<Item = usize>,
        upload: impl FnOnce() -> Result<T, BoxError>,
    ) -> Result<T, BoxError> {
        let load = Load::of(sizes);
        self.slots.uploaded(load.bytes);
        let Some(port) = &self.port else {
            return upload();
        };
        let all = || {
            let uploaded = upload()?;
            load.begin(&port.device)?;
            Ok(uploaded)
        };
        if self.settings.workers {
            port.stream.executes(all)
        } else {
            all()
        }
    }
}

/// What one batch uploads.
#[derive(Clone, Copy, Default)]
struct Load {
    bytes: usize,
    largest: usize,
    tensors: usize,
}

impl Load {
    fn of(sizes: impl Iterator<Item = usize>) -> Self {
        sizes.fold(Self::default(), |load, bytes| Self {
            bytes: load.bytes + bytes,
            largest: load.largest.max(bytes),
            tensors: load.tensors + 1,
        })
    }

    /// Has the device start with what was handed to it, without waiting for it.
    ///
    /// Submitted work lies in a queue until there is enough of it, or somebody makes a blocking call. A
    /// flush is one, and lets go of the slots of the flush before; but behind a copy after which the
    /// device flushes by itself it would wait for that copy, so there any other call does.
    fn begin(self, device: &Device) -> Result<(), BoxError> {
        let flushes = self.largest > LARGE || self.bytes >= MANY_BYTES || self.tensors >= MANY;
        if flushes {
            device.memory_pool_usage();
            return Ok(());
        }
        device.flush().map_err(|error| format!("{error}").into())
    }
}

/// The ports that are open, and the stream of every device that ever had one: a stream has memory
/// pools of its own, which stay.
static PORTS: Mutex<Vec<(Device, StreamId, Weak<Port>)>> = Mutex::new(Vec::new());

impl Port {
    /// The port of a device, which is opened if nobody has; `None` where there is nothing to be gained
    /// from one.
    fn of(device: &Device) -> Result<Option<Arc<Self>>, ConfigError> {
        if !check_cuda(device)? {
            return Ok(None);
        }
        let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = ports.iter_mut().find(|(of, ..)| of == device);
        if let Some((_, stream, open)) = known {
            let port = open
                .upgrade()
                .unwrap_or_else(|| Self::open(device, *stream));
            *open = Arc::downgrade(&port);
            return Ok(Some(port));
        }
        let stream = StreamId::allocate();
        let port = Self::open(device, stream);
        ports.push((device.clone(), stream, Arc::downgrade(&port)));
        Ok(Some(port))
    }

    fn open(device: &Device, stream: StreamId) -> Arc<Self> {
        let uploader = PoolConfig {
            name: "prefetch-upload",
            size: 1,
            lifetime: Lifetime::Pool,
            shutdown_grace: GRACE,
            worker_init: None,
        };
        let on = device.clone();
        let pin: Pin = Box::new(move |bytes| stream.executes(|| pin(&on, bytes)));
        Arc::new(Self {
            device: device.clone(),
            stream,
            uploader: Arc::new(Pool::new(uploader)),
            slots: Slots::new(Some(pin)),
        })
    }
}

impl Drop for Port {
    /// Gives every page back: the slots that are not in use, those whose copies are under way once these
    /// are done, and then the device's own pools.
    fn drop(&mut self) {
        self.slots.close();
        let device = &self.device;
        let streams = [self.stream, StreamId::current()];
        // A device that has failed may panic; a drop may not.
        let ended = catch_unwind(AssertUnwindSafe(|| give_back(device, streams)));
        if ended.is_err() {
            log::warn!("{device:?} has failed and gives nothing back");
        }
    }
}

/// Waits for the uploads of these streams, and gives back what the device's pools do not need.
fn give_back(device: &Device, streams: [StreamId; 2]) {
    for stream in streams {
        // A flush lets go of what the one before covered.
        let outcome = stream.executes(|| device.flush().and_then(|()| device.flush()));
        if let Err(error) = outcome {
            log::warn!("{device:?} could not finish its uploads: {error}");
        }
    }
    device.memory_cleanup();
}

/// Page-locks so many bytes by the device's own means: a blocking call into its server.
fn pin(device: &Device, bytes: usize) -> Option<Bytes> {
    let mut data = TensorData::from_bytes_vec(vec![0; bytes], [bytes], DType::U8);
    device.staging(std::iter::once(&mut data));
    let bytes = data.into_bytes();
    (bytes.property() == AllocationProperty::Pinned).then_some(bytes)
}

/// Where there is a port there is the feature, and with it Flex.
fn host_device() -> Device {
    #[cfg(feature = "cuda")]
    return Device::flex();
    #[cfg(not(feature = "cuda"))]
    Device::default()
}

/// More CUDA devices than any machine has.
#[cfg(feature = "cuda")]
const MOST: usize = 64;

/// Which CUDA device it is, there or not.
#[cfg(feature = "cuda")]
fn cuda_index(device: &Device) -> Option<usize> {
    (0..MOST).find(|index| Device::cuda(*index) == *device)
}

/// Whether it is a device with page-locked memory and a stream of its own. Asks no driver.
#[cfg(feature = "cuda")]
pub(crate) fn is_card(device: &Device) -> bool {
    cuda_index(device).is_some()
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn is_card(_device: &Device) -> bool {
    false
}

/// The same; an error where it is one and is not there.
#[cfg(feature = "cuda")]
fn check_cuda(device: &Device) -> Result<bool, ConfigError> {
    use crate::burn::DeviceType;

    let Some(index) = cuda_index(device) else {
        return Ok(false);
    };
    match Device::enumerate(DeviceType::Cuda).into_vec().len() {
        0 => Err(ConfigError::NoCuda),
        devices if index >= devices => Err(ConfigError::NoSuchDevice { index, devices }),
        _ => Ok(true),
    }
}

#[cfg(not(feature = "cuda"))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "with the feature it may be an error"
)]
fn check_cuda(_device: &Device) -> Result<bool, ConfigError> {
    Ok(false)
}
