# frozen_string_literal: true

require "test_helper"
require "json"

# Code that a batch calls forks a child, and the child returns to the batch instead of ending.
class BatchForksTest < Minitest::Test
  PATIENCE = 60

  # What the child does after its fork.
  WAYS = { "exec" => 'exec("/nonexistent/program")', "exit" => "exit", "raise" => 'raise "in the child"',
           "Thread.exit" => "Thread.exit", "throw" => "throw :out", "nothing" => "nil" }.freeze

  # Its only thread is the main thread of the child, so Ruby turns both into SystemExit.
  EXITS = %w[exit Thread.exit].freeze

  PRELUDE = <<~RUBY
    STDERR.sync = true
    def say(*words) = STDOUT.syswrite("\#{words.join(" ")}\\n")

    # Waits for the child, in the parent only.
    def fork_child
      pid = fork
      return yield unless pid

      Process.wait(pid)
      say(:child, $?.exitstatus.inspect)
    end
  RUBY

  ITEM = <<~RUBY
    batch = Pando::Batch.new(threads: 1) do |item|
      say(:item, item, $$)
      fork_child { %s } if item == 1
    end
    say(:done, *batch.run([1, 2, 3]).done)
  RUBY

  DEAD_LETTER = <<~RUBY
    dead = lambda do |item, _error|
      say(:dead, item, $$)
      fork_child { %s } if item == 1
    end
    batch = Pando::Batch.new(threads: 1, dead_letter: dead) { raise "bad" }
    say(:failed, *batch.run([1, 2]).failed.map(&:item))
  RUBY

  CONSUMER = <<~RUBY
    require "pando/batch/consumer"
    ended = Thread::Queue.new
    rounds = [[1], [2]]
    consumer = Pando::Batch::Consumer.new(
      threads: 1, idle: 0, wake: -> {},
      fetch: lambda do
        say(:fetch, $$)
        rounds.empty? ? (ended << true) && sleep : rounds.shift.tap { |items| fork_child { %<fetch>s } if items == [1] }
      end,
      settle: lambda do |result|
        say(:settle, *result.done, $$)
        fork_child { %<settle>s } if result.done == [1]
      end
    ) { nil }
    consumer.start
    ended.pop
    say(:parent)
    exit!
  RUBY

  def test_a_child_that_an_item_has_forked_does_not_process_the_items_of_its_parent
    WAYS.each do |way, code|
      pid, lines, said = run_script(format(ITEM, code))

      assert_equal ["item 1 #{pid}", "child #{status(way)}", "item 2 #{pid}", "item 3 #{pid}", "done 1 2 3"], lines, way
      next assert_empty said if EXITS.include?(way)

      assert_match(/\Apando: process \d+, forked by process #{pid} [^\n]* returned to the batch[^\n]*\n\z/, said, way)
    end
  end

  def test_the_message_has_the_error_that_the_child_raised
    assert_match(/\(Errno::ENOENT: .*nonexistent/, run_script(format(ITEM, WAYS["exec"])).last)
  end

  def test_a_child_that_calls_exit_ends_with_its_status_and_silently
    { "exit 0" => 0, "exit 3" => 3, "abort" => 1 }.each do |code, status|
      pid, lines, said = run_script(format(ITEM, code))

      assert_equal ["item 1 #{pid}", "child #{status}"], lines.first(2), code
      assert_empty said, code
    end
  end

  def test_nor_does_a_child_that_a_dead_letter_has_forked
    WAYS.each do |way, code|
      pid, lines, = run_script(format(DEAD_LETTER, code))

      assert_equal ["dead 1 #{pid}", "child #{status(way)}", "dead 2 #{pid}", "failed 1 2"], lines, way
    end
  end

  def test_nor_does_a_child_that_a_consumers_fetch_or_settle_has_forked
    %w[exec exit nothing].each do |way|
      pid, lines, = run_script(format(CONSUMER, fetch: WAYS[way], settle: WAYS[way]))

      child = "child #{status(way)}"
      assert_equal ["fetch #{pid}", child, "settle 1 #{pid}", child, "fetch #{pid}", "settle 2 #{pid}",
                    "fetch #{pid}", "parent"], lines, way
    end
  end

  private

  # @return [Integer] with which the child ends
  def status(way) = EXITS.include?(way) ? 0 : 1

  # @return [Array(Integer, Array<String>, String)] pid, lines of stdout, stderr
  def run_script(code)
    readers, writers = Array.new(2) { IO.pipe }.transpose
    pid = spawn(Gem.ruby, "-I", File.expand_path("../../../lib", __dir__), "-rpando/batch", "-e", PRELUDE + code,
                out: writers[0], err: writers[1], pgroup: true)
    writers.each(&:close)
    outputs = readers.map { |reader| Thread.new { reader.read } }
    flunk("it hangs") unless outputs.all? { |output| output.join(PATIENCE) }
    [pid, outputs[0].value.lines(chomp: true), outputs[1].value]
  ensure
    Process.kill(:KILL, -pid)
    Process.wait(pid)
  end
end
