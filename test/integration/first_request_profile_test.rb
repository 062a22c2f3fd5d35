# frozen_string_literal: true

require "test_helper"
require "json"
require "support/servers"
require_relative "../../bench/support/bundle"

# `first_request_profile true` with the real profilers.
class FirstRequestProfileTest < Minitest::Test
  include Support::Servers

  GEMFILE = Support::Checkout.path("test/fixtures/apps/profiled/Gemfile")
  # It tells what stands before it, as the worker sees it.
  APP = <<~RUBY
    module Work
      def self.busy(seconds)
        deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
        Math.sqrt(rand) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
      end
    end
    trap("ALRM") { $alarm = true }
    run lambda { |env|
      Work.busy(0.1) if env["PATH_INFO"] == "/slow"
      if env["PATH_INFO"] == "/alarm"
        Process.kill("ALRM", Process.pid)
        sleep 0.001 until $alarm
      end
      body = caller.grep(/first_request/).size
      [200, {}, ["\#{body} \#{Process.pid}"]]
    }
  RUBY

  def start(*without, **options)
    bundle = Bench::Bundle.new("app-profiled-without-#{without.join("-")}", GEMFILE, without: without).prepare
    serve(app: APP, env: bundle.environment, **options)
  end

  def profiled(server, generation) = server.wait_past("profile.written", generation: generation)

  # The second request of a worker goes straight to the application.
  def serve_generations(server)
    written = [0, 1].map do |generation|
      server.refork if generation == 1
      wait_until { server.workers.all? { |worker| worker.title.include?("gen #{generation}") } }
      assert_equal [1], frames_before(server).values.map { |counts| counts.count(&:positive?) }.uniq
      profiled(server, generation)
    end

    assert_equal([0, 1], server.events("profile.written").map { |event| event["generation"] })
    written
  end

  # Frames of ours that stood before the application, at each of some requests of each worker. Of several
  # requests at a time, each worker has one.
  def frames_before(server)
    found = server.workers.to_h { |worker| [worker.pid, []] }
    wait_until(message: "three requests of each worker") do
      clients = Array.new(found.size) { Thread.new { server.get("/slow").body.split.map(&:to_i) } }
      clients.map(&:value).each { |frames, pid| found.fetch(pid) << frames }
      found.values.all? { |counts| counts.size > 2 }
    end
    found
  end

  def test_stackprof_writes_one_profile_a_generation
    server = start("vernier", config: "workers 2\nrefork :manual\nfirst_request_profile true, folder: \"profiles\"")
    events = serve_generations(server)
    profiles = events.map { |event| JSON.parse(File.read(event["path"])) }

    assert_equal ["GET /slow"], events.map { |event| event["request"] }.uniq
    assert_equal events.map { |event| event["path"] }.sort, Dir[File.join(server.folder, "profiles/*")]
    profiles.each do |profile|
      frame = profile["frames"].values.find { |one| one["name"] == "Work.busy" }

      assert_operator frame["total_samples"], :>, 10
      assert_operator profile["samples"], :>=, frame["total_samples"]
    end
    assert_equal 200, server.get("/alarm").status, "the application's handler of its signal is there again"
    assert_empty(server.events.select { |event| event["event"].end_with?(".failed", ".lost") })
  end

  def test_vernier_writes_one_profile_a_generation
    skip "Vernier needs Ruby 3.2.1, this is #{RUBY_VERSION}" if RUBY_VERSION < "3.2.1"
    server = start("stackprof", config: "workers 1\nrefork :manual\nreactor false\nfirst_request_profile true")
    events = serve_generations(server)

    events.each do |event|
      assert_equal File.join(server.folder, "tmp/profiles"), File.dirname(event["path"])
      assert_includes File.read(event["path"]), "Work.busy"
      assert_kind_of Hash, JSON.parse(File.read(event["path"]))["meta"]
    end
    threads = Dir.children("/proc/#{server.workers.first.pid}/task").map do |task|
      File.read("/proc/#{server.workers.first.pid}/task/#{task}/comm")
    end
    assert_empty threads.grep(/vernier/i), "its thread has ended"
  end

  def test_without_either_the_server_does_not_start
    server = start("stackprof", "vernier", ready: false, config: "first_request_profile true")
    status = server.wait_for_exit

    assert_equal 1, status.exitstatus
    assert_match(/first_request_profile needs a profiler: add .*vernier.*stackprof.* to the Gemfile/, server.output)
  end
end
