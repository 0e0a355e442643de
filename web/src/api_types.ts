// Made by tools/gen_api_types.py of the types of the answers in python/uflip/web.

/** Times and failed reads over the erases of a block. */
export interface BlockWear {
  block: string;
  cycles: number;
  at: number[];
  erase_ms: number[];
  write_ms: number[];
  read_ms: number[];
  failing_share: number[];
  first_failure: number | null;
  erase_failed: boolean;
}

/** A cause of an I/O's response time. */
export interface Cause {
  name: string;
  code: number;
  words: string;
  ns: number;
}

/** Mean time of an I/O for a cause: of all I/Os of a range, and of the slow ones. */
export interface CauseMeans {
  name: string;
  words: string;
  every_ns: number;
  slow_ns: number;
}

/** Mean time of an I/O for a cause. */
export interface CauseTime {
  words: string;
  ns: number;
}

/** The findings about an open-channel device. */
export interface Channel {
  bands: ResponseBands[];
  shares: ResponseBands[];
  luns: Luns | null;
  wear: BlockWear | null;
  scaling: ScalingCurve[];
  rules: Rule[];
}

/** Numbers of clients: connected, in total, refused. */
export interface ClientCounts {
  now: number;
  in_all: number;
  turned_away: number;
}

/** A trait: its share among the slow I/Os, and among all. */
export interface CommonTrait {
  name: string;
  value: string;
  slow: number;
  every: number;
  lift: number;
}

/** A result compared with the first; see `uflip.results.comparison.ResultComparison`. */
export interface ComparedPair {
  first: string;
  second: string;
  devices: Record<string, string[]>;
  conditions: StoredWarning[];
  verdicts: Record<string, number>;
  differences: string[];
  rows: ComparedRow[];
  only_in_first: string[];
  only_in_second: string[];
}

/** One of the compared results. */
export interface ComparedResult {
  status: string;
  finished: number;
  planned: number;
  experiments: number;
  known: number;
  cells: string[] | null;
  numbers: (number | null)[] | null;
  baselines_ms: Record<string, number | null>;
  warnings: string[];
  tail: Tail | null;
  key: string;
  name: string;
  device: string;
  created_utc: string;
  scale: string;
  state: string;
  durability: string;
}

/** An experiment of both, in words. */
export interface ComparedRow {
  micro_benchmark: string;
  pattern: string;
  parameter: string | null;
  value: number | null;
  unit: string | null;
  first_ns: number;
  second_ns: number;
  ratio: number;
  low: number | null;
  high: number | null;
  verdict: string;
  p50_ratio: number | null;
  p99_ratio: number | null;
  repeats_to: number;
  first_half_ns: number | null;
  second_half_ns: number | null;
  repetitions: number;
  first_degrees: number;
  second_degrees: number;
  unknown_because: string | null;
  title: string;
  label: string;
  axis: string;
  axis_words: string;
}

/** Results next to each other, each compared with the first. */
export interface ComparisonView {
  results: ComparedResult[];
  columns: string[];
  verdicts: Record<string, string>;
  comparisons: ComparedPair[];
}

/**  */
export interface DeviceAdvice {
  class: string;
  hints: Hint[];
}

/** A device to choose. */
export interface DeviceChoice {
  name: string;
  description: string;
}

/** The device log of a simulated device. */
export interface DeviceLogView {
  ios: number[];
  at_ns: number[];
  erased_blocks: number[];
  least_erased_blocks: number[];
  write_amplification: (number | null)[];
  dies: Die[];
  blocks_per_die: number;
  erases: number[][];
  erased: number;
  pages_per_block: number;
  valid: number[] | null;
}

/** A die, and its channel. */
export interface Die {
  channel: number;
  die: number;
}

/** The same with its position on the axis of its figure, and the rounds of each repetition. */
export interface ExperimentPoint {
  pattern: string;
  words: string;
  parameter: string | null;
  value: number | null;
  label: string;
  statistics: StatisticsSummary | null;
  half_width_ns: number | null;
  converged: boolean | null;
  runs: string[];
  at: number;
  rounds: RoundSummary[][];
}

/** An experiment. */
export interface ExperimentView {
  pattern: string;
  words: string;
  parameter: string | null;
  value: number | null;
  label: string;
  statistics: StatisticsSummary | null;
  half_width_ns: number | null;
  converged: boolean | null;
  runs: string[];
}

/** Requests to one export, and the state of its device. */
export interface ExportNow {
  name: string;
  reads: number;
  writes: number;
  flushes: number;
  trims: number;
  write_zeroes: number;
  failed: number;
  bytes_read: number;
  bytes_written: number;
  bytes_zeroed: number;
  response_time: ServiceTimes;
  simulated: ServiceTimes;
  lag: ServiceTimes;
  held_ns: number;
  recent: RecentTimes;
  counters: Record<string, number> | null;
  flash?: FlashNow;
  write_amplification: number | null;
}

/** A folder that cannot be read, and why. */
export interface Failed {
  key: string;
  name?: string;
  error: Record<string, string>;
}

/** Flash operations and waits of an I/O. */
export interface Flash {
  did: OperationGroup[];
  waited_for: Share[];
  waits: Wait[];
  rows: number[];
}

/** Erase blocks, and bytes programmed since serving began. */
export interface FlashNow {
  blocks: number;
  free_blocks: number;
  programmed_bytes: number;
}

/** A device with changes, its editable keys, and its possible runs. */
export interface Form {
  device: string;
  url: string;
  devices: DeviceChoice[];
  facts: [string, string][];
  tables: KeyTable[];
  others: string[];
  patterns: NamedPattern[];
  options: string[];
  benchmarks: Runnable[];
  limits: Record<string, number>;
  problem: Record<string, string> | null;
}

/** A row of the list, from the manifest of a folder. */
export interface Glance {
  key: string;
  name: string;
  device: string;
  simulated: boolean;
  created_utc: string;
  scale: string;
  state: string;
  durability: string;
  status: string;
  repetitions: number;
  planned: number;
  run: string | null;
  warnings: string[];
  uflip_version: string;
}

/** The outcome of a hint. */
export interface Hint {
  number: number;
  statement: string;
  verdict: string;
  because: string;
  advice: string;
  numbers: Record<string, string | number | boolean | null>;
  micro_benchmark: string;
  decided_by: string;
}

/** The inferred properties; empty until `command` was run. */
export interface InsideView {
  properties: PropertyView[];
  check: string;
  why_no_twin: string;
  bytes_written: number;
  command: string;
}

/** One I/O; its columns are those of its log, of a block device or an open-channel device. */
export interface Io {
  number: number;
  causes: Cause[];
  begin_ns: number;
  response_time_ns?: number;
  submit_ns?: number;
  stream?: number;
  offset_bytes?: number;
  io_size_bytes?: number;
  mode?: number;
  component?: number;
  ignored?: number;
  idle_before_ns?: number;
  host_gap_ns?: number;
  host?: string;
  flash?: Flash;
  chain?: string;
}

/** A key of the device: its value, the value in its profile, and the allowed values. */
export interface KeyRow {
  name: string;
  value: string;
  usual: string | null;
  unit: string;
  allowed: string;
  meaning: string;
  choices: string[] | null;
}

/** The keys of a table of the profile. */
export interface KeyTable {
  name: string;
  keys: KeyRow[];
}

/** A fact in words. */
export interface LabelledText {
  label: string;
  text: string;
}

/** Throughput of every LUN, one row per channel. */
export interface Luns {
  write_mb_per_s: number[][];
  read_mb_per_s: number[][];
}

/** Figure and texts of a micro-benchmark, for runs that vary one parameter. */
export interface MicroBenchmarkView {
  name: string;
  parameter: string | null;
  title: string;
  question: string;
  how_to_read: string;
  finding: string;
  axis: string;
  values: Tick[];
  levels_ms: Record<string, number | null>;
  patterns: Pattern[];
  others: ExperimentView[];
}

/** Reads, writes, or another mode of a run that has several. */
export interface ModeStatistics {
  bytes: number;
  ios_per_s: number | null;
  bytes_per_s: number | null;
  statistics: StatisticsSummary | null;
}

/** A pattern, and its full name. */
export interface NamedPattern {
  name: string;
  words: string;
}

/** A run in a list. */
export interface NamedRun {
  id: string;
  micro_benchmark: string;
  title: string;
  pattern: string;
  words: string;
  varies: string;
  repetition: number;
}

/** One operation: requested, start and end time [ns since the run began]. */
export interface Operation {
  what: string;
  die: number;
  io?: number;
  job?: number;
  made?: string;
  block?: number;
  valid?: number;
  asked: number;
  begin: number;
  end: number;
  cells: number;
  waited_ns: number;
  waited_for: Share[];
  channel_waited_ns: number;
  channel_waited_for: Share[];
}

/** The same, with their dies. */
export interface OperationGroup {
  what: string;
  die: number;
  io?: number;
  job?: number;
  made?: string;
  block?: number;
  valid?: number;
  count: number;
  ns: number;
  dies: number[];
}

/** The experiments of a pattern, in order. */
export interface Pattern {
  pattern: string;
  words: string;
  points: ExperimentPoint[];
}

/** A run, with the key of its result; see `uflip.play.stage.Played`. */
export interface PlayedRun {
  number: number;
  url: string;
  benchmark: string;
  label: string;
  spec: Record<string, any> | null;
  state: string;
  share: number;
  words: string;
  error: Record<string, string> | null;
  took_s: number;
  key: string;
}

/** All runs, the current one included. */
export interface PlayedRuns {
  played: PlayedRun[];
}

/** A property of the device: its value and interval in words, its probe, and its meaning. */
export interface PropertyView {
  key: string;
  meaning: string;
  value: string;
  interval: string;
  identified: boolean;
  probe: string;
  title: string;
  reason: string;
}

/** Causes of the response times of a range, and of its slowest hundredth. */
export interface RangeCauses {
  count: number;
  slow: number;
  sampled: boolean;
  least_ns: number | null;
  causes: CauseMeans[];
}

/** The same in the last complete interval. */
export interface RecentTimes {
  count: number;
  mean_ns: number | null;
  p50_ns: number | null;
  p90_ns: number | null;
  p99_ns: number | null;
  p999_ns: number | null;
  max_ns: number | null;
  span_ns: number;
}

/** Changes of a device that act on the causes of an I/O; or the reason for an empty list. */
export interface Remedies {
  device: string;
  remedies: Remedy[];
  problem: string;
}

/** A change: its name, its title, how it acts, and the changed keys. */
export interface Remedy {
  name: string;
  title: string;
  why: string;
  keys: Record<string, string>;
}

/** The convergence of one run of an experiment. */
export interface RepetitionSummary {
  converged: boolean | null;
  reasons: string[] | null;
  half_width_ns: number | null;
  startup_ios: number | null;
  period_ios: number | null;
  slow_episodes: number | null;
  opening_ns: number | null;
  mean_ns: number | null;
  run: string;
  io_count: number;
}

/** Response times of a mix, thinned out. */
export interface ResponseBands {
  mix: string;
  ios: number;
  at: number[];
  op: number[];
  ms: number[];
  top_ms: number;
  mb_per_s: number;
}

/** The list of results, and of sweeps. */
export interface ResultList {
  version: string;
  roots: string[];
  columns: string[];
  note: string;
  results: (Glance | Failed)[];
  sweeps: (SweepGlance | Failed)[];
}

/** A result: its numbers, its micro-benchmarks, its warnings, its runs. */
export interface ResultView {
  status: string;
  finished: number;
  planned: number;
  experiments: number;
  known: number;
  cells: string[] | null;
  numbers: (number | null)[] | null;
  baselines_ms: Record<string, number | null>;
  key: string;
  name: string;
  device: string;
  url: string;
  simulated: boolean;
  is_open_channel: boolean;
  created_utc: string;
  scale: string;
  state: string;
  durability: string;
  durability_means: string;
  repetitions: number;
  uflip_version: string;
  headline: string;
  columns: string[];
  note: string;
  characteristics: string[];
  advice: DeviceAdvice | null;
  baselines: ExperimentView[];
  benchmarks: MicroBenchmarkView[];
  warnings: WarningView[];
  missing: number;
  skipped: number;
  drive: LabelledText[];
  inside: InsideView | null;
  runs: NamedRun[];
}

/** A part of a long run of writes: its end and its statistics. */
export interface RoundSummary {
  written_bytes: number;
  ended_ns: number;
  ios_per_s: number | null;
  p99_ns: number;
  write_amplification: number | null;
}

/** The requested rows. */
export interface Rows {
  rows: (WarningRow | Failed)[];
}

/** A rule of the unwritten contract, its verdict, and the numbers behind the verdict. */
export interface Rule {
  name: string;
  says: string;
  verdict: string;
  evidence: string;
}

/** The numbers of a run. */
export interface RunView {
  id: string;
  micro_benchmark: string;
  title: string;
  pattern: string;
  words: string;
  varies: string;
  repetition: number;
  key: string;
  result: string;
  device: string;
  simulated: boolean;
  io_count: number;
  io_ignore: number;
  elapsed_ns: number;
  ios_per_s: number | null;
  statistics: StatisticsSummary | null;
  by_mode: Record<string, ModeStatistics>;
  repetitions: RepetitionSummary[];
  causes: string[];
  spent_ns: CauseTime[];
  counters: Record<string, number>;
  write_amplification: number | null;
  drive: LabelledText[];
  spec: Record<string, any>;
  has_inside: boolean;
  previous: string | null;
  next: string | null;
  edges_ns: number[];
}

/** A possible run, and the question that it answers. */
export interface Runnable {
  name: string;
  title: string;
  question: string;
}

/** Throughput by the degree of parallelism. */
export interface ScalingCurve {
  name: string;
  over: string;
  degrees: number[];
  mb_per_s: number[];
}

/** The same, with its socket. */
export interface Server {
  elapsed_ns: number;
  clients: ClientCounts;
  exports: ExportNow[];
  socket: string;
}

/** All servers of the page. */
export interface Servers {
  servers: (Server | UnreachableServer)[];
}

/** Statistics of times [ns]; null without samples. */
export interface ServiceTimes {
  count: number;
  mean_ns: number | null;
  p50_ns: number | null;
  p90_ns: number | null;
  p99_ns: number | null;
  p999_ns: number | null;
  max_ns: number | null;
}

/** Operations of one purpose and job, summed up. */
export interface Share {
  what: string;
  die: number;
  io?: number;
  job?: number;
  made?: string;
  block?: number;
  valid?: number;
  count: number;
  ns: number;
}

/** The slowest I/Os of a part of a run, and their common traits. */
export interface Slowest {
  ios: Io[];
  slow: number;
  least_ns: number | null;
  count: number;
  traits: CommonTrait[];
}

/** Histogram of the response times of some runs, with the maximum. */
export interface Spread {
  runs: number;
  count: number;
  counts: number[];
  edges_ns: number[];
  longest_ns: number;
}

/** Statistics of response times [ns]; a percentile is null if the sample is too small for it. */
export interface StatisticsSummary {
  count: number;
  min_ns: number;
  max_ns: number;
  mean_ns: number;
  std_ns: number | null;
  p5_ns: number | null;
  p50_ns: number | null;
  p90_ns: number | null;
  p95_ns: number | null;
  p99_ns: number | null;
  p99_9_ns: number | null;
}

/** A warning with its numbers and a next step. */
export interface StoredWarning {
  code: string;
  message: string;
  numbers: Record<string, any>;
  advice: string;
}

/** A sweep with its rows: for each measured point a value for each axis. */
export interface Sweep {
  key: string;
  name: string;
  device: string;
  pattern: string;
  vary: string[];
  points: number;
  complete: boolean;
  created_utc: string;
  axes: SweepAxis[];
  places: number[];
  devices: string[];
  rows: ((number | null)[])[];
}

/** An axis of a sweep: a varied value or a measure of each point. */
export interface SweepAxis {
  name: string;
  varies: boolean;
  better: number;
  unit: string;
  logarithmic: boolean;
  words: string[] | null;
}

/** A sweep in the list, from its manifest. */
export interface SweepGlance {
  key: string;
  name: string;
  device: string;
  pattern: string;
  vary: string[];
  points: number;
  complete: boolean;
  created_utc: string;
}

/** Percentiles of the response times of a pattern: p50, p90, p95, p99, p99.9, maximum. */
export interface Tail {
  pattern: string;
  times_ns: (number | null)[];
}

/** A value of the varied parameter, and its position on the axis. */
export interface Tick {
  at: number;
  label: string;
}

/** A socket without an answering server. */
export interface UnreachableServer {
  socket: string;
  error: Record<string, string>;
}

/** A wait for the write cache or a free page [ns since the first I/O], and its die's work. */
export interface Wait {
  kind: string;
  page: number;
  die: number;
  begin: number;
  end: number;
  ns: number;
  waited_for: Share[];
}

/** The same, with the key of its folder. */
export interface WarningRow {
  status: string;
  finished: number;
  planned: number;
  experiments: number;
  known: number;
  cells: string[] | null;
  numbers: (number | null)[] | null;
  baselines_ms: Record<string, number | null>;
  warnings: string[];
  tail: Tail | null;
  key: string;
}

/** A warning about the data, with the ids of its runs. */
export interface WarningView {
  code: string;
  message: string;
  numbers: Record<string, any>;
  advice: string;
  runs: string[];
}

/** The answer of each request. */
export interface Answers {
  causes: RangeCauses;
  channel: Channel;
  compare: ComparisonView;
  inside: DeviceLogView;
  io: Io;
  operation: Operation;
  play: Form;
  played: PlayedRuns;
  remedies: Remedies;
  result: ResultView;
  results: ResultList;
  rows: Rows;
  run: RunView;
  served: Servers;
  slowest: Slowest;
  spread: Spread;
  sweep: Sweep;
}
