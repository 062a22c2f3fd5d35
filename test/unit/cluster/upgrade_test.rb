# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require "rbconfig"
require_relative "support/clock"
require_relative "support/fakes"

# When the monitor goes on as another image, and when it does not.
class UpgradeUnitTest < Minitest::Test
  include ClusterSupport::Clock
  include ClusterSupport::Listening

  Upgrade = Pando::Cluster::Upgrade
  # As much of the monitor as is asked.
  Cluster = Struct.new(:generations, :reload, :examiner, :lanes, :reactors, :roster, :ending, :external_signals,
                       :control, keyword_init: true) do
    def ending? = ending
    def pools = [self]
  end
  Answer = Class.new do
    def initialize(**answers) = answers.each { |name, value| define_singleton_method(name) { value } }
  end

  # Stands for the probe: it ends when the test says so.
  class Probe
    attr_accessor :outcome
    attr_reader :given_up

    def proceed = outcome
    def give_up = @given_up = true
    def due = 99.0
  end

  # Stands for the signals that the monitor has got.
  class Signals
    attr_accessor :waiting
    alias waiting? waiting
    attr_reader :trapped

    def trap_all = @trapped = true
  end

  def setup
    super
    @roster = ClusterSupport.roster
    @generations = Struct.new(:occupation, :upcoming).new
    @lanes = Struct.new(:told) { alias_method :told?, :told }.new(true)
    @cluster = Cluster.new(generations: @generations, reload: Answer.new(under_way?: false),
                           examiner: Answer.new(due: nil), lanes: @lanes, reactors: Answer.new(told?: true),
                           roster: @roster, external_signals: Answer.new(due: nil))
    @cluster.control = @control = Struct.new(:failed) { def fail_unfinished = self.failed = true }.new
    @upgrade = Upgrade.new(@cluster, nil, nil, @signals = Signals.new, nil)
    @executed = executed = []
    @upgrade.define_singleton_method(:execute) { |image| image == :gone ? raise(Errno::ENOENT) : executed << image }
    probe = @probe = Probe.new
    @upgrade.define_singleton_method(:probe) do
      @probe = probe
      enter(:probing)
    end
  end

  def test_a_try_and_then_the_step
    @upgrade.request("test")
    turn

    assert_empty(@executed)
    @probe.outcome = outcome(image: :other, version: "2")
    turn
    assert_equal([:other], @executed)
    assert(@control.failed)
    assert_equal(%w[upgrade.started monitor.upgrading], event_names)
    assert_equal("2", events("monitor.upgrading").first[:to])
  end

  def test_it_waits_for_what_is_begun
    @generations.occupation = ["generation 3 (refork) is rolling out", 9.0]
    @upgrade.request("test")
    turn
    elapse(Upgrade::TIMEOUT - 60)
    turn
    assert_empty(events("upgrade.failed"))
    elapse(60)
    turn

    assert_equal("after 120 s still generation 3 (refork) is rolling out", reason)
    refute_predicate(@upgrade, :under_way?)
  end

  def test_what_it_waits_for
    starting = @roster.admit(:worker, 0, 0, ClusterSupport::FakeLink.new, nil)
    assert_equal("a worker is starting", obstacle)
    @roster.dismiss(starting)
    @generations.occupation = ["generation 3 is watched", 9.0]
    assert_equal("generation 3 is watched", obstacle)
    @generations.occupation = nil
    @lanes.told = false
    assert_equal("the reactor has not read its orders", obstacle)
    @lanes.told = true
    @cluster.reactors = Answer.new(told?: false)
    assert_equal("a listener is being closed", obstacle)
    @cluster.reactors = Answer.new(told?: true)
    assert_nil(obstacle)
    @cluster.reload = Answer.new(under_way?: true)
    assert_equal("a reload is under way", obstacle)
    @cluster.reload = Answer.new(under_way?: false)
    @cluster.examiner = Answer.new(due: 1.0)
    assert_equal("a stuck process is being examined", obstacle)
  end

  # So that it comes to rest.
  def test_after_the_try_nothing_is_begun_for_a_while
    starting = tried_while_one_starts

    assert_predicate(@upgrade, :holds?)
    elapse(Upgrade::HOLD)
    refute_predicate(@upgrade, :holds?)
    assert_empty(@executed)
    @roster.dismiss(starting)
    turn
    assert_equal([:other], @executed)
  end

  def test_a_signal_is_obeyed_first
    @signals.waiting = true
    @upgrade.request("test")
    turn
    @probe.outcome = outcome(image: :other, version: "2")
    turn

    assert_empty(@executed)
    assert(@signals.trapped)
    refute(@control.failed)
    @signals.waiting = false
    turn
    assert_equal([:other], @executed)
  end

  def test_what_cannot_be_executed_is_the_end
    @upgrade.request("test")
    turn
    @probe.outcome = outcome(image: :gone, version: "2")
    turn

    assert_equal("No such file or directory", reason)
    assert(@signals.trapped)
  end

  def test_a_generation_on_its_way_is_not_held_up
    tried_while_one_starts
    @generations.upcoming = :booting

    refute_predicate(@upgrade, :holds?)
  end

  def test_a_failed_try_is_the_end
    @upgrade.request("test")
    turn
    @probe.outcome = outcome(reason: "no such gem", errors: "Bundler::GemNotFound")
    turn

    assert_equal(["no such gem", "Bundler::GemNotFound"],
                 events("upgrade.failed").first.payload.values_at(:reason, :backtrace))
    @upgrade.request("again")
    assert_equal(2, events("upgrade.started").size)
  end

  def test_a_stop_ends_it
    @upgrade.request("test")
    turn
    @cluster.ending = true
    turn

    assert_equal("the server stops", reason)
    assert(@probe.given_up)
  end

  def test_a_second_wish_shares_the_outcome
    2.times { @upgrade.request("test") }

    assert_equal(1, events("upgrade.started").size)
  end

  private

  def outcome(**facts) = Upgrade::Probe::Outcome.new(**facts)
  def reason = events("upgrade.failed").first[:reason]
  def obstacle = @upgrade.send(:obstacle)

  def turn
    @upgrade.hear
    @upgrade.proceed
  end

  def tried_while_one_starts
    @upgrade.request("test")
    turn
    @probe.outcome = outcome(image: :other, version: "2")
    @roster.admit(:worker, 0, 0, ClusterSupport::FakeLink.new, nil).tap { turn }
  end
end

# The child in which another image is tried: what it says, and what it does not.
class UpgradeProbeTest < Minitest::Test
  include ClusterSupport::Clock

  Upgrade = Pando::Cluster::Upgrade
  Document = Upgrade::Document

  def setup
    @poller = Pando::Sys::Poller.new
    @state = Upgrade::State.new
    @scoreboard = Pando::Sys::Scoreboard.create(4)
    @state.add("scoreboard", descriptor: @scoreboard.fileno)
  end

  def teardown
    @poller.close
    super
  end

  def test_it_says_what_it_was_executed_as
    outcome = run_with(Document.new.add("ready", version: "2", protocol: 1).add("argument", value: "a b")
                                        .add("variable", name: "X", value: "y z"))

    assert_nil(outcome.reason)
    assert_equal("2", outcome.version)
    assert_equal([["a b"], { "X" => "y z" }], [outcome.image.arguments, outcome.image.variables])
  end

  def test_it_reads_the_state_and_has_the_shared_memory
    outcome = run_program(<<~'RUBY')
      state = IO.for_fd(3).pread(1000, 0).lines(chomp: true)
      board = File.readlink("/proc/self/fd/5")[/memfd:[^ ]+/]
      IO.for_fd(4, "w").write("pando 1\nfailed reason=#{state[1].delete(" ")},#{board}\nend records=1\n")
    RUBY

    assert_equal("scoreboarddescriptor=#{@scoreboard.fileno},memfd:pando-scoreboard", outcome.reason)
  end

  def test_why_it_cannot
    outcome = run_with(Document.new.add("failed", reason: "it has format 2"))

    assert_equal("it has format 2", outcome.reason)
    assert_nil(outcome.image)
  end

  # And what it has complained of.
  def test_it_ends_without_a_word
    outcome = run_program("warn 'no such gem'; exit!(1)")

    assert_equal("it ended before it had read the state: no such gem", outcome.reason)
    assert_equal("no such gem\n", outcome.errors)
    assert_equal("it ended before it had read the state", run_program("exit!(1)").reason)
  end

  def test_half_a_report_is_none
    text = Document.new.add("ready", version: "2").to_s
    outcome = run_with(text.lines[0..1].join)

    assert_equal("its report: it has no end", outcome.reason)
  end

  def test_it_has_a_deadline
    probe = start("$stderr.write('x'); sleep")
    wait_until { probe.proceed || probe.instance_variable_get(:@process).errors == "x" }
    elapse(Upgrade::Probe::TIMEOUT)

    assert_equal("it was not ready within 30 s", ended(probe).reason)
  end

  def test_one_that_says_too_much_is_not_believed
    outcome = run_program("IO.for_fd(4, 'w').write('x' * #{Upgrade::Probe::REPORT_BYTES * 2}) rescue nil")

    assert_match(/its report/, outcome.reason)
  end

  def test_no_descriptor_is_left
    GC.start # of other tests
    before = Dir.children("/proc/self/fd").size
    assert_raises(Pando::Error) { Upgrade::Probe.new(@state, @poller) { raise Pando::Error, "no program" } }
    assert_raises(Errno::ENOENT) { Upgrade::Probe.new(@state, @poller) { |spawn| spawn.call(["/none"], {}) } }
    run_program("")
    GC.start

    assert_operator(Dir.children("/proc/self/fd").size, :<=, before)
  end

  private

  def start(program)
    Upgrade::Probe.new(@state, @poller) do |spawn|
      spawn.call([RbConfig.ruby, "--disable=gems", "-e", program], ENV.to_h.except("RUBYOPT"))
    end
  end

  def run_program(program) = ended(start(program))
  def run_with(document) = run_program("IO.for_fd(4, 'w').write(#{document.to_s.dump})")
  def ended(probe) = wait_until { probe.proceed }
end
