# frozen_string_literal: true

require "test_helper"
require "pando/sys"
require_relative "support/in_child"

class SysSpawnTest < Minitest::Test
  include SysSupport::InChild

  Sys = Pando::Sys

  # What a shell script prints to descriptor 3.
  def output_of(script, environment: [], descriptors: [])
    reader, writer = IO.pipe
    pid = Sys.spawn(["/bin/sh", "-c", script], environment, [writer, *descriptors])
    writer.close
    text = reader.read
    Process.wait(pid)
    text
  ensure
    [reader, writer].each(&:close)
  end

  def test_the_environment_is_exactly_the_one_given
    text = output_of("echo $A $HOME. >&3", environment: ["A=one two"])

    assert_equal "one two .\n", text
  end

  def test_a_program_is_looked_up_in_the_path_of_this_process
    pid = Sys.spawn(["true"], [], [])

    assert_predicate Process.wait2(pid).last, :success?
  end

  # Its own limit stays as it is, although the descriptors that it hands over are beyond that of the new process.
  def test_a_soft_limit_of_open_files
    limits = Process.getrlimit(:NOFILE)
    texts = in_child do
      reader, writer = IO.pipe
      pipes = Array.new(60) { writer.dup }
      Process.wait(Sys.spawn(["/bin/sh", "-c", "ulimit -Sn >&3; ulimit -Hn >&3"], [], [pipes.last], nil, 40))
      [reader.readpartial(100).split.map(&:to_i), Process.getrlimit(:NOFILE)]
    end

    assert_equal [[40, limits.last], limits], texts
    assert_equal "#{limits.first}\n", output_of("ulimit -Sn >&3")
  end

  def test_a_missing_program_is_an_error
    assert_raises(Errno::ENOENT) { Sys.spawn(["/no/such/program"], [], []) }
  end

  def test_descriptors_take_their_places_whatever_their_numbers_were
    texts = in_child do
      pipes = Array.new(6) { IO.pipe }
      writers = pipes.map(&:last)
      # Their numbers overlap the places, in the opposite order.
      shuffled = [writers.reverse, writers.rotate(2)].map do |order|
        script = order.each_index.map { |index| "echo #{index} >&#{3 + index}" }.join(";")
        Process.wait(Sys.spawn(["/bin/sh", "-c", script], [], order))
        order.map { |writer| pipes.find { |pipe| pipe.last == writer }.first.readpartial(10).to_i }
      end
      shuffled << writers.map(&:close_on_exec?).uniq
    end

    assert_equal [[*0..5], [*0..5], [true]], texts
  end

  def test_no_other_descriptor_is_handed_over
    ours = IO.pipe

    refute_includes output_of("ls -l /proc/self/fd >&3"), "pipe:[#{ours.first.stat.ino}]"
    assert_includes output_of("ls -l /proc/self/fd >&3", descriptors: [ours.first]), "pipe:[#{ours.first.stat.ino}]"
  ensure
    ours.each(&:close)
  end

  def test_the_new_program_starts_with_no_signal_blocked
    blocked = in_child do
      reader, writer = IO.pipe
      Process.wait(Sys.spawn(["/bin/sh", "-c", "grep SigBlk /proc/self/status >&3"], [], [writer]))
      reader.readpartial(100)
    end

    assert_match(/SigBlk:\s+0+$/, blocked)
  end

  def test_what_cannot_be_handed_over_leaks_nothing
    closed = IO.pipe.each(&:close).first
    before, errors, after = in_child do
      open = IO.pipe
      before = open_descriptors
      errors = [[*open, closed], [*open, 9999], [*open, "text"], open * 100].map do |descriptors|
        error_of { Sys.spawn(["true"], [], descriptors) }
      end
      [before, errors, open_descriptors]
    end

    assert_equal %w[IOError Errno::EBADF NoMethodError ArgumentError], errors
    assert_equal before, after
  end

  def test_a_failed_start_leaks_nothing
    before, after = in_child do
      open = IO.pipe
      error_of { Sys.spawn(["/no/such/program"], [], open) }
      before = open_descriptors
      3.times { error_of { Sys.spawn(["/no/such/program"], [], open) } }
      [before, open_descriptors]
    end

    assert_equal before, after
  end

  def test_arguments_that_are_none
    assert_raises(ArgumentError) { Sys.spawn([], [], []) }
    assert_raises(ArgumentError) { Sys.spawn(["true", "a\0b"], [], []) }
    assert_raises(TypeError) { Sys.spawn("true", [], []) }
    assert_raises(TypeError) { Sys.spawn(["true", 1], [], []) }
    assert_raises(TypeError) { Sys.spawn(["true"], { "A" => "1" }, []) }
    assert_raises(TypeError) { Sys.spawn(["true"], [], nil) }
  end

  def test_it_works_while_the_collector_runs_all_the_time
    text = in_child do
      reader, writer = IO.pipe
      words = Array.new(10) { |index| "w#{index}" }
      # Ruby 3.1.2 does not survive compaction at each allocation, in a process as large as the whole test run.
      GC.auto_compact = true if RUBY_VERSION >= "3.2" && GC.respond_to?(:auto_compact=)
      GC.stress = true
      command = ["/bin/sh", "-c", 'echo "$@" >&3', "sh", *words.map(&:dup)]
      pid = Sys.spawn(command, words.map { |word| "#{word}=#{word}" }, [writer])
      GC.stress = false
      Process.wait(pid)
      reader.readpartial(1000)
    end

    assert_equal Array.new(10) { |index| "w#{index}" }.join(" "), text.chomp
  end
end
