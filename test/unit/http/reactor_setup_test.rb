# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "open3"
require "tempfile"
require "timeout"
require "pando/config"
require "pando/http/reactor_setup"
require_relative "support/reactor_process"

# What a new lane takes, and when the monitor has to doubt that requests are taken at all.
class HTTPReactorSetupTest < Minitest::Test
  def setup
    config = Tempfile.create("pools") do |file|
      file.write('pool :reports, paths: ["/reports"]').then { file.flush }
      Pando::Config.load(["-c", file.path], env: {})
    end
    @setup = Pando::HTTP::ReactorSetup.new(config)
    @channel = @setup.descriptors.first
    @turns = 1000
    @stats = Array.new(2) { { "queued" => 0, "set_aside" => 0, "shed_queue" => 5, "responses" => 100 } }
    look
  end

  def look(...) = look_at_pools(...).first.positive?

  # All of them have requests that wait, as far as the workers are told.
  def look_at_pools(turns: 1, pool: 0, **more)
    @turns += turns
    more.each { |name, count| @stats[pool][name.to_s] += count }
    stats = ->(number) { @stats[number].dup }
    @channel.stub(:stats, -> { { "turns" => @turns } }) do
      @channel.stub(:pool_stats, stats) { @channel.stub(:waiting, [1, 2]) { @setup.blocked } }
    end
  end

  def test_a_lane_that_cannot_be_made_leaves_nothing_open
    before = open_descriptors
    Pando::HTTP::Channel.stub(:lane, -> { raise Errno::EMFILE }) do
      Timeout.timeout(20) { assert_raises(Errno::EMFILE) { @setup.lane } }
    end

    assert_operator open_descriptors, :<=, before # those of an earlier test may be collected meanwhile
  end

  def test_a_reactor_that_has_not_begun_holds_nothing
    assert_equal({ connections: 0, requests: 0 }, @setup.in_flight)
  end

  def open_descriptors = Dir.children("/proc/self/fd").size

  def test_nothing_waits
    refute look
    refute look(responses: 1)
  end

  def test_requests_wait_and_none_is_answered
    assert look(queued: 1)
    assert look
    refute look(queued: -1)
  end

  def test_requests_wait_for_slow_readers
    refute look(queued: 1, set_aside: 1)
    assert look(queued: 1)
  end

  def test_requests_are_sent_away_and_none_is_answered
    assert look(shed_queue: 3)
    refute look
  end

  def test_the_reactor_stands_still
    refute look(queued: 1, turns: 0)
    assert look
  end

  # Others are busy, or so fast that idle ones are not woken.
  def test_requests_wait_and_others_are_answered
    refute look(queued: 3, responses: 1)
    refute look(shed_queue: 1, responses: 1)
  end

  def test_one_pool_answers_and_the_other_does_not
    assert_equal [0, 2], look_at_pools(pool: 1, queued: 1)
    assert_equal [0, 2], look_at_pools(pool: 0, queued: 3, responses: 1)
    assert_equal [1, 0], look_at_pools(pool: 1, responses: 1)
  end

  def test_events_name_the_pool_if_there_are_several
    alone = Pando::HTTP::ReactorSetup.new(Pando::Config.load([], env: {}))
    told = []
    subscription = Pando::Events.subscribe("queue.blocked") { |event| told << event[:pool] }
    [[@setup, 0], [@setup, 1], [alone, 0]].each { |setup, pool| setup.about(pool) { Pando::Events.emit("queue.blocked") } }

    assert_equal ["web", "reports", nil], told
  ensure
    Pando::Events.unsubscribe(subscription)
  end
end

# Pando::HTTP::ReactorProgram: the reactor as a program of its own, and as a fork where that cannot be.
class HTTPReactorProgramTest < Minitest::Test
  include HTTPSupport::ReactorProcess

  PROGRAM = Pando::HTTP::ReactorProgram

  def test_it_has_nothing_of_the_monitor
    ENV["OF_THE_MONITOR"] = "yes"
    start

    refute_predicate self, :ruby?
    assert_match(/\APANDO_REACTOR=\d+\0\z/, read("environ"))
    assert_equal "pando reactor\0", read("cmdline")
    assert_equal "pando reactor\n", read("comm")
  ensure
    ENV.delete("OF_THE_MONITOR")
  end

  def test_it_is_still_there_when_its_file_is_gone
    copy = copied(0o700)
    program = PROGRAM.new(@setup.descriptors.first, copy.path)
    copy.unlink
    @pid = program.start(*arguments)

    assert_ready
    refute_predicate self, :ruby?
  end

  def test_without_a_program_it_is_a_fork
    assert_forked("/nowhere", "No such file or directory @ rb_sysopen - /nowhere")
  end

  def test_without_leave_to_execute_it_is_a_fork
    assert_forked(copied(0o600).path, "Permission denied - exec (of the reactor)")
  end

  # Of another build say, or without a library that it needs.
  def test_a_program_that_ends_at_once_is_followed_by_a_fork
    program = PROGRAM.new(@setup.descriptors.first, "/bin/false")
    Process.wait(program.start(*arguments))
    events = record { @pid = program.start(*arguments) }

    assert_equal(["pando-reactor ended before it had begun"], events.map { |event| event[:reason] })
    assert_ready
    Process.kill("KILL", @pid)
    Process.wait(@pid)
    assert_empty(record { @pid = program.start(*arguments) }, "it is tried again")
  end

  def test_papers_of_anybody_else_are_refused
    [nil, "", "x", "2", "99999999999", "77"].each { |place| assert_refused("PANDO_REACTOR" => place) }
    ["", "x" * 100, "\0" * 1_000_000].each do |text|
      papers = Tempfile.new("papers").tap { |file| file.write(text) && file.flush }
      assert_refused({ "PANDO_REACTOR" => "9" }, 9 => papers)
    end
  end

  private

  def copied(mode)
    Tempfile.new("program").tap do |copy|
      FileUtils.cp(PROGRAM.path, copy.path)
      copy.chmod(mode)
      copy.close # else nobody could execute it, see execve(2)
    end
  end

  # Its own interpreter is linked into it, or a library.
  def ruby? = read("maps").match?(/libruby|#{Regexp.escape(RbConfig.ruby)}/)

  def launch(*arguments) = PROGRAM.new(@setup.descriptors.first).start(*arguments)

  # @return [Array<Pando::Event>]
  def record
    events = []
    subscription = Pando::Events.subscribe { |event| events << event }
    yield
    events
  ensure
    Pando::Events.unsubscribe(subscription)
  end

  def read(name) = File.read("/proc/#{@pid}/#{name}")

  def assert_forked(path, reason)
    events = record do
      Pando::Events.about(pool: "web") { @pid = PROGRAM.new(@setup.descriptors.first, path).start(*arguments) }
    end

    assert_equal([["reactor.fallback", reason, nil]],
                 events.map { |event| [event.name, *event.payload.values_at(:reason, :pool)] })
    assert_ready
    assert_serves
  end

  def assert_refused(environment, options = {})
    output, status = Open3.capture2e(environment, PROGRAM.path, **options)

    assert_equal "pando reactor: only the pando monitor that it was built with can run it\n", output
    assert_equal 1, status.exitstatus
  end
end
