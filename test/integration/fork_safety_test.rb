# frozen_string_literal: true

require "test_helper"
require "json"
require "support/servers"

# Promise: what must not be shared between siblings is not.
class ForkSafetyTest < Minitest::Test
  include Support::Servers

  UNSAFE = <<~RUBY
    run lambda { |env|
      Pando.no_longer_fork_safe!("a library with threads") if env["PATH_INFO"] == "/unsafe"
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  # The generators of the mold are in use, so that a copy of their state would go on from there.
  WARM = <<~RUBY
    require "openssl"
    [rand, Random.bytes(1), OpenSSL::Random.random_bytes(1)]
  RUBY
  # Each worker notes the numbers that it draws first.
  NUMBERS = <<~'RUBY'
    require "json"
    require "securerandom"

    DRAW = lambda {
      { "Kernel#rand" => rand(2**64), "Random.rand" => Random.rand(2**64), "Random.bytes" => Random.bytes(8).unpack1("Q"),
        "Array#shuffle" => (1..40).to_a.shuffle.join(" "), "SecureRandom" => SecureRandom.hex(8),
        "Random.urandom" => Random.urandom(8).unpack1("Q"), "OpenSSL::Random" => OpenSSL::Random.random_bytes(8).unpack1("Q") }
    }
    after_worker_fork do
      File.write("numbers", JSON.generate(DRAW.call) + "\n", mode: "a")
    end
  RUBY

  def test_a_fork_unsafe_worker_is_never_promoted
    server = serve(app: UNSAFE, config: "workers 2\nrefork :manual")
    unsafe = Integer(server.get("/unsafe").body)
    20.times { server.get("/") } # by either, most by the first one
    server.refork

    event = server.events("worker.unsafe").first
    assert_equal([unsafe, "a library with threads"], event.values_at("pid", "reason"))
    refute_equal(unsafe, server.events("refork.started").first["source"])
  end

  def test_with_fork_unsafe_workers_only_a_refork_is_refused
    server = serve(app: UNSAFE, config: "workers 1\nrefork after: [3]")
    4.times { server.get("/unsafe") }
    refused = server.wait_for("refork.refused") { server.signal("USR2") }

    assert_match(/\Ano worker is fit to become a mold: the app has made each of them unsafe to fork/, refused["reason"])
    assert_empty(server.events("refork.started"))
    assert_equal(200, server.get("/").status)
    assert_equal(1, server.events("worker.unsafe").size)
  end

  def test_siblings_and_generations_draw_different_numbers
    server = serve(app: WARM + UNSAFE, config: "workers 3\nrefork :manual\n#{NUMBERS}")
    3.times { server.refork }
    drawn = File.readlines(File.join(server.folder, "numbers")).map { |line| JSON.parse(line) }

    assert_equal(12, drawn.size)
    drawn.first.each_key do |source|
      numbers = drawn.map { |one| one[source] }
      assert_equal(numbers.uniq, numbers, source)
    end
  end

  def test_workers_die_first_when_memory_runs_out
    server = serve(config: "workers 2\nrefork :manual\noom_score_adj 321", wrapper: PROTECTED_LESS)
    before = oom_score_adj(server.pid)
    assert_operator(before, :>=, 400)
    server.refork

    workers = before + 321
    assert_equal([workers] * 2, replaced(server).map { |worker| oom_score_adj(worker.pid) })
    others = [before, oom_score_adj(server.mold.pid), oom_score_adj(server.tree.titled("reactor").first.pid), workers]
    assert_equal(others.sort.uniq, others, "then the reactor, then the mold, a promoted one too, and the monitor last")
  end

  # As Kubernetes starts what has no guarantee of its memory.
  PROTECTED_LESS = ["sh", "-c", 'echo 400 >/proc/self/oom_score_adj; exec "$@"', "sh"].freeze

  private

  # Those of before may still be leaving.
  def replaced(server)
    wait_until(message: "two workers of generation 1") do
      server.workers.select { |worker| worker.title.include?("gen 1 ") }.then { |found| found if found.size == 2 }
    end
  end

  def oom_score_adj(pid) = Integer(File.read("/proc/#{pid}/oom_score_adj"))
end
