# frozen_string_literal: true

require "test_helper"
require "rbconfig"
require "pando/cluster/monitor"
require_relative "../support/clock"

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
