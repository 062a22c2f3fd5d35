# frozen_string_literal: true

require "test_helper"
require "pando/http"
require "open3"
require "support/c_program"

# The memory between the reactor and the workers. What it promises while processes
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
    counts, nanoseconds = channel.queue_times(0)
    assert_equal [0], [*channel.stats.values, *channel.pool_stats(15).values, *counts, nanoseconds].uniq
    assert_equal([112, 112], [channel.queue_times(15), channel.durations(15)].map { |times, _| times.size })
    assert_equal %w[GET HEAD POST PUT PATCH DELETE OPTIONS other], channel.answers(0).keys
    assert_equal [[0] * 6], channel.answers(15).values.uniq
    assert_empty channel.pool_stats(0).keys - channel.stats.keys
    assert_raises(IndexError) { channel.queue_times(16) }
    assert(channel.stats.keys.all?(&:frozen?))
  end

  def test_only_a_channel_can_be_attached
    File.open(File::NULL) { |file| assert_raises(Errno::EINVAL) { Pando::HTTP::Channel.attach(file.fileno) } }
    assert_raises(TypeError) { Pando::HTTP::Channel.new }
  end

  def memory = IO.for_fd(Pando::HTTP::Channel.lane, "r+b")

  def lane(number = 0, memory: self.memory)
    @channel ||= Pando::HTTP::Channel.create
    @pipe ||= IO.pipe
    Pando::HTTP::Lane.new(@channel, number, memory, *@pipe)
  end

  def test_a_lane_has_a_number_on_the_channel
    assert_equal 1023, lane(1023).number
    [1024, -1].each { |number| assert_raises(IndexError, RangeError) { lane(number) } }
    assert_raises(RuntimeError) { Pando::HTTP::Lane.allocate.take(+"") }
  end

  def test_only_a_lane_is_mapped_as_one
    File.open(File::NULL) { |file| assert_raises(Errno::EINVAL) { lane(memory: file) } }
    assert_raises(Errno::EINVAL) { lane(memory: IO.for_fd(@channel.fileno, autoclose: false)) }
  end

  # It would answer in its parent's place. What it maps itself stays when the parent's lane is collected.
  def test_a_child_has_no_lane
    one = lane
    assert one.sleep
    pid = fork do
      nothing = [one.take(+""), one.wanted?, one.offered?, one.waiting?, one.half_closed?, one.cut, one.abort(0),
                 one.want_file, one.put(["x"], 0, nil), one.close, one.step_back, one.starve, one.fed]
      gone = File.read("/proc/self/maps").scan("memfd:pando-lane").empty?
      own = lane
      one = nil
      GC.start
      exit!(gone && nothing.none? && own.sleep ? 0 : 1)
    end

    assert_predicate Process.wait2(pid).last, :success?
    assert_predicate one, :asleep?
  end

  # In a worker.
  def test_what_all_share_is_not_to_be_written
    lane
    writable = File.foreach("/proc/self/maps").grep(/memfd:pando-channel/).map { |mapping| mapping[/ (\S+) /, 1] }

    assert_equal ["r--s"], writable.uniq
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
    sources = %w[http/channel.c http/lane.c http/lane_frames.c sys/sealed.c]
    program = Support::CProgram.path(name, sources, sanitizers: sanitizers)
    output, status = Open3.capture2e(program, *arguments.map(&:to_s))
    assert_predicate status, :success?, output
    output
  end
end
