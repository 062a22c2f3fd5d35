# frozen_string_literal: true

require "test_helper"
require "pando/cluster/control/line"
require "support/servers"

# Generations that are poisoned on purpose, and only they: none gets past its canary, whatever the poison; and
# healthy ones of an app whose requests differ widely are let through. CANARIES says how many of each.
class CanaryTest < Minitest::Test
  include Support::Servers

  ROUNDS = Integer(ENV.fetch("CANARIES", "1"), 10)
  CLIENTS = 3

  # Most requests are short, some long, few very long, and now and then one fails.
  APP = <<~RUBY
    $kept = []
    def burn(seconds)
      deadline = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + seconds
      nil while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < deadline
    end

    run lambda { |_env|
      case $poison
      when "raises" then raise IOError, "poisoned"
      when "leaks" then $kept << ("x" * 1_048_576)
      when "loops" then loop { nil }
      when "slows" then burn(0.02)
      when "sleeps" then sleep 0.05
      end
      chance = rand
      burn(chance < 0.01 ? 0.05 : chance < 0.1 ? 0.005 : 0.0005 * (1 + rand))
      [chance > 0.995 ? 500 : 200, {}, ["generation"]]
    }
  RUBY

  CONFIG = <<~RUBY
    workers 2
    refork :manual, failures: false
    control "control.sock"
    timeout 2, grace: 1
    rollout canary: { requests: 20, seconds: 0.5, longest: 5 }
    after_mold_fork { |_, mold| $poison = File.exist?("poison") && mold.generation.positive? && File.read("poison") }
  RUBY

  POISONS = %w[raises leaks loops slows sleeps].freeze

  def test_no_poisoned_process_gets_past
    server = begin_with_load
    reasons = POISONS.to_h do |poison|
      server.write("poison", poison)
      [poison, Array.new(ROUNDS) { poisoned(server) }]
    end
    File.delete(File.join(server.folder, "poison"))

    assert_equal "ok", *refork(server)
    assert_equal 1, rolled_out(server).size, "a poisoned generation was rolled out"
    show(reasons) if ROUNDS > 1
  end

  def test_who_is_healthy_does
    server = begin_with_load
    ROUNDS.times do
      word, text = refork(server)
      assert_equal "ok", word, text
      server.wait_past("generation.retired", generation: text[/generation (\d+)/, 1].to_i - 1)
    end

    assert_empty server.events("canary.failed") + server.events("generation.discarded")
    assert_empty(server.events("generation.retired").reject { |event| event["reason"].end_with?("has proved itself") })
  end

  def teardown
    @over = true
    @clients&.each(&:join)
    super
  end

  private

  # Long enough for all workers to have served some.
  def begin_with_load
    server = serve(app: APP, config: CONFIG)
    served = Queue.new
    @clients = Array.new(CLIENTS) { Thread.new { served << status_of(server, "/") until @over } }
    150.times { served.pop }
    server
  end

  # @return [String] why it was discarded, without figures
  def poisoned(server)
    word, text = refork(server)

    assert_equal "failed", word, text
    assert_match(/\Ageneration \d+ was discarded/, text)
    text[/: (.*)/, 1].gsub(/\d+(\.\d+)?/, "N")
  end

  def rolled_out(server) = server.events("generation.rolling").map { |event| event["generation"] } - [0]

  def show(reasons)
    reasons.each do |poison, list|
      list.tally.each { |reason, count| puts "  #{poison}, #{count} times: #{reason}" }
    end
  end

  # As `pando refork --force` does.
  # @return [Array(String, String)] its last word
  def refork(server)
    wait_until(message: "a refork is granted") do
      answer = ask(server, "refork force=yes")
      answer unless answer.last.to_s.start_with?("refused: ")
    end
  end

  def ask(server, line)
    socket = UNIXSocket.new(File.join(server.folder, "control.sock"))
    socket.puts(line)
    last = socket.read.lines.last.to_s
    record = Pando::Cluster::Control::Line.decode(last)
    [record.first, record.last["reason"] || record.last["text"]]
  ensure
    socket&.close
  end
end
