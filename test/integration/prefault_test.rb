# frozen_string_literal: true

require "test_helper"
require "pando/refork/prefault"
require "pando/sys"
require "support/server_process"

# What the first worker of a generation writes to, the next ones are given before they serve, and so is the first one of
# the next generation.
class PrefaultTest < Minitest::Test
  # A request, but for /idle, does this and answers how many page faults that took.
  def self.app(data, write)
    <<~RUBY
      #{data}
      FAULTS = -> { File.read("/proc/self/stat").rpartition(")").last.split[7].to_i }
      run lambda { |env|
        next [200, {}, []] if env["PATH_INFO"] == "/idle"

        before = FAULTS.call
        #{write}
        [200, {}, [(FAULTS.call - before).to_s]]
      }
    RUBY
  end

  PAGES = 2048
  # It writes to all of a text that the mold has.
  APP = app("TEXT = 'x' * (#{PAGES} * 4096)",
            "0.step(TEXT.bytesize - 1, 4096) { |at| TEXT.setbyte(at, Process.pid % 251) }").freeze
  OBJECTS = 200_000
  # It writes to objects of the mold: pages of Ruby's heap, at 40 bytes for each object.
  HEAP_APP = app("Thing = Struct.new(:number); THINGS = Array.new(#{OBJECTS}) { Thing.new(0) }",
                 "THINGS.each { |thing| thing.number = Process.pid }").freeze

  def teardown
    @server&.kill
  end

  def start(prefault, app: APP)
    @server = Support::ServerProcess.start(app: app, config: "refork :manual, prefault: #{prefault}\nworkers 1")
  end

  def faults = @server.get("/").body.to_i

  # @return [Hash] the event of a worker that takes the place of one that was killed
  def successor
    @server.wait_for("worker.ready") { Process.kill("KILL", @server.workers.first.pid) }
  end

  def test_a_later_worker_hardly_faults
    skip "no MADV_POPULATE_WRITE" unless Pando::Sys::HotSet.supported?
    start("{ bytes: 32.mb, milliseconds: 5000 }")
    first = faults
    200.times { faults }
    prepared = @server.wait_past("prefault.prepared")
    given = successor

    assert_operator first, :>=, PAGES - 1
    assert_operator prepared["bytes"], :>=, (PAGES - 1) * 4096
    assert_includes ((PAGES - 1) * 4096)..(32 * 1024 * 1024), given["prefaulted"]
    assert_operator faults, :<, PAGES / 10
  end

  # Each mold is forked from a worker that was there before the last mold knew what it would write to.
  def test_a_generation_begins_with_what_the_last_one_wrote_to
    fresh = begin_with_a_guess

    refute_includes @server.events("worker.ready").find { |event| event["generation"] == 1 }, "prefaulted"

    assert_operator fresh["prefaulted"], :>=, (PAGES - 1) * 4096
    assert_operator faults, :<, PAGES / 10
    assert_empty @server.complaints
  end

  def test_pages_of_rubys_heap_are_guessed_too
    fresh = begin_with_a_guess(HEAP_APP)

    assert_operator fresh["prefaulted"], :>=, OBJECTS * 40 * 3 / 4
    assert_operator faults, :<, OBJECTS * 40 / 4096 / 4
  end

  # It writes to all that it is given, so the others are given it, too.
  def test_what_was_guessed_right_is_handed_on
    begin_with_a_guess
    200.times { faults }
    prepared = @server.wait_past("prefault.prepared", generation: 2)

    assert_operator prepared["bytes"], :>=, (PAGES - 1) * 4096
    assert_operator successor["prefaulted"], :>=, (PAGES - 1) * 4096
  end

  # It writes to hardly any of what it is given. So the others are not given that.
  def test_what_was_guessed_wrong_is_not_handed_on
    begin_with_a_guess
    200.times { @server.get("/idle") }
    prepared = @server.wait_past("prefault.prepared", generation: 2)

    assert_operator prepared["bytes"], :<, PAGES * 4096 / 2
    assert_operator successor["prefaulted"], :<, PAGES * 4096 / 2
  end

  # @return [Hash] the event of the next generation's first worker
  def begin_with_a_guess(app = APP)
    skip "no MADV_POPULATE_WRITE" unless Pando::Sys::HotSet.supported?
    skip "the kernel lets nobody read a child's memory" unless Pando::Refork::Prefault.may_guess?
    start("{ bytes: 32.mb, milliseconds: 5000 }", app: app)
    2.times do |generation|
      faults
      200.times { @server.get("/idle") }
      @server.wait_past("prefault.prepared", generation: generation)
      @server.refork
    end
    @server.events("worker.ready").last.tap { |fresh| assert_equal 2, fresh["generation"] }
  end

  def test_off
    start("false")
    200.times { faults }

    refute successor.key?("prefaulted")
    assert_operator faults, :>=, PAGES - 1
    assert_empty @server.events("prefault.prepared")
  end
end
