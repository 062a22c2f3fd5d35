# frozen_string_literal: true

require "test_helper"
require "pando/sys"
require "support/server_process"

# What the first worker of a generation writes to, the next ones are given before they serve.
class PrefaultTest < Minitest::Test
  PAGES = 2048
  # Each request writes to all of a text that the mold has, and answers how many page faults that took.
  APP = <<~RUBY.freeze
    TEXT = "x" * (#{PAGES} * 4096)
    FAULTS = -> { File.read("/proc/self/stat").rpartition(")").last.split[7].to_i }
    run lambda { |env|
      before = FAULTS.call
      0.step(TEXT.bytesize - 1, 4096) { |at| TEXT.setbyte(at, 1) }
      [200, {}, [(FAULTS.call - before).to_s]]
    }
  RUBY

  def teardown
    @server&.kill
  end

  def start(prefault)
    @server = Support::ServerProcess.start(app: APP, config: "refork :manual, prefault: #{prefault}\nworkers 1")
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
    a_new_generation_begins_without
  end

  def a_new_generation_begins_without
    @server.refork
    fresh = @server.events("worker.ready").last

    assert_equal 1, fresh["generation"]
    refute fresh.key?("prefaulted")
    assert_empty(@server.complaints.reject { |event| event["event"] == "worker.lost" })
  end

  def test_off
    start("false")
    200.times { faults }

    refute successor.key?("prefaulted")
    assert_operator faults, :>=, PAGES - 1
    assert_empty @server.events("prefault.prepared")
  end
end
