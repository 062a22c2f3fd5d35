# frozen_string_literal: true

require "test_helper"
require "pando/http"
require "open3"
require "support/c_program"

# The mapping between the reactor and the workers. What it promises while processes
# die is tried in C: test/c/channel_stress.c, test/c/channel_hostile.c.
class HTTPChannelTest < Minitest::Test
  ADDRESS = Support::CProgram::ADDRESS
  THREAD = Support::CProgram::THREAD

  def test_another_process_attaches_by_descriptor
    channel = Pando::HTTP::Channel.create
    memory = IO.for_fd(channel.fileno, autoclose: false).dup
    memory.autoclose = false # attach takes it over
    other = Pando::HTTP::Channel.attach(memory.fileno)

    assert_equal [0, false], [other.epoch, other.draining?]
    assert_nil other.close_fd
    assert_equal(-1, other.fileno)
    assert_equal 0, other.epoch
  end

  def test_what_the_reactor_counts
    channel = Pando::HTTP::Channel.create

    assert_empty %w[connections idle in_flight queued accepted requests] - channel.stats.keys
    assert_equal [0], (channel.stats.values + channel.waits).uniq
    assert_equal 32, channel.waits.size
    assert(channel.stats.keys.all?(&:frozen?))
  end

  def test_only_a_channel_can_be_attached
    File.open(File::NULL) { |file| assert_raises(Errno::EINVAL) { Pando::HTTP::Channel.attach(file.fileno) } }
    assert_raises(TypeError) { Pando::HTTP::Channel.new }
  end

  def test_a_lane_has_a_number_on_the_channel
    channel = Pando::HTTP::Channel.create
    reader, writer = IO.pipe

    assert_equal 1023, Pando::HTTP::Lane.new(channel, 1023, reader, writer).number
    [1024, -1].each do |number|
      assert_raises(IndexError, RangeError) { Pando::HTTP::Lane.new(channel, number, reader, writer) }
    end
    assert_raises(RuntimeError) { Pando::HTTP::Lane.allocate.take(+"") }
  ensure
    [reader, writer].each(&:close)
  end

  def test_nothing_in_shared_memory_leads_out_of_bounds
    assert_includes run_c("channel_hostile", ADDRESS), "all hold"
  end

  def test_every_request_once_while_processes_are_killed
    assert_match(/^60000 turns: .* dead workers$/, run_c("channel_stress", [], "processes", 3, 60_000))
  end

  def test_every_request_once_while_threads_give_up
    assert_match(/^20000 turns: .* dead workers$/, run_c("channel_stress", THREAD, "threads", 3, 20_000))
  end

  private

  def run_c(name, sanitizers, *arguments)
    program = Support::CProgram.path(name, %w[http/channel.c http/lane.c], sanitizers: sanitizers)
    output, status = Open3.capture2e(program, *arguments.map(&:to_s))
    assert_predicate status, :success?, output
    output
  end
end
