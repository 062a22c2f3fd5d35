# frozen_string_literal: true

require "test_helper"
require "delegate"
require "stringio"
require "tmpdir"
require "pando/fork_safety/process_state"
require_relative "../sys/support/in_child"

class ProcessStateTest < Minitest::Test
  include SysSupport::InChild

  State = Pando::ForkSafety::ProcessState

  def test_nothing_has_changed_where_nothing_was_done
    before = State.take
    system("true")
    Dir.chdir("/tmp") { trap("USR2", trap("USR2") { nil }) }

    assert_empty(State.changes(before, State.take))
    assert_equal(before, State.take)
  end

  def test_each_change_is_named_with_what_it_was_and_is
    skip "this process has the lowest priority already" if Process.getpriority(Process::PRIO_PROCESS, 0) == 19

    texts = changed do
      File.umask(0o027)
      Dir.chdir("/")
      Process.setpriority(Process::PRIO_PROCESS, 0, Process.getpriority(0, 0) + 1)
      trap("PIPE", "IGNORE")
      trap("WINCH") { nil }
      Process.setrlimit(:CORE, 0, 0)
      $stdin.reopen("/dev/zero")
      $stdout.reopen(File::NULL)
    end

    ["umask 0022 -> 0027", "directory #{Dir.pwd} -> /", "signal PIPE handled -> ignored",
     "signal WINCH default -> handled"].each { |text| assert_includes(texts, text) }
    assert(texts.any? { |text| text.match?(%r{\Astdin .* -> /dev/zero \(reading, inode \d+\)\z}) }, texts.inspect)
    assert(texts.any? { |text| text.match?(%r{\Astdout .* -> /dev/null \(writing, inode \d+\)\z}) }, texts.inspect)
    assert(texts.any? { |text| text.match?(/\Alimit core file size .* -> 0 \(at most 0\)\z/) }, texts.inspect)
    assert(texts.any? { |text| text.match?(/\Anice \d+ -> \d+\z/) }, texts.inspect)
    assert_equal(8, texts.size, texts.inspect)
  end

  # The descriptors stay open.
  def test_streams_that_are_closed_in_ruby_only
    texts = changed do
      $stdout.close
      $stderr.close
    end

    assert_equal(2, texts.size, texts.inspect)
    %w[stdout stderr].zip(texts) { |name, text| assert_match(/\A#{name} .* -> closed\z/, text) }
  end

  # An object of a library may stand before the stream, and passes on its methods.
  def test_a_stream_that_is_closed_behind_another_object
    texts = changed { $stdout = SimpleDelegator.new($stdout).tap(&:close) }

    assert_equal(1, texts.size, texts.inspect)
    assert_match(/\Astdout .* -> closed\z/, texts.first)
  end

  def test_a_stream_that_is_replaced_in_ruby_has_not_changed
    assert_empty(changed { $stderr = StringIO.new })
  end

  # A test helper may have captured the output and closed its own object. Ruby forks all the same.
  def test_an_object_in_place_of_a_stream_may_be_closed
    assert_empty(changed { $stdout = $stderr = StringIO.new.tap(&:close) })
  end

  def test_who_it_is
    skip("only root can become another user") unless Process.uid.zero?
    texts = changed do
      Process.groups = [7]
      Process::Sys.setresgid(5, 6, 7)
      Process::Sys.setresuid(8, 9, 10)
    end

    ["user ids 0 0 0 0 -> 8 9 10 9", "group ids 0 0 0 0 -> 5 6 7 6"].each { |text| assert_includes(texts, text) }
    assert(texts.any? { |text| text.start_with?("groups ") && text.end_with?(" -> 7") }, texts.inspect)
    assert(texts.any? { |text| text.match?(/\Acapabilities effective \h+ -> 0+\z/) }, texts.inspect)
  end

  def test_of_a_variable_its_name_and_nothing_else
    ENV["STATE_OLD"] = "former secret"
    ENV["STATE_GONE"] = "lost secret"
    changes = in_child do
      before = State.take
      ENV["STATE_OLD"] = "another secret"
      ENV["STATE_NEW\e"] = "new secret"
      ENV.delete("STATE_GONE")
      State.changes(before, State.take).flat_map { |one| [one.to_s, one.inspect, one.finding.to_h.to_s, one.token] }
    end

    ['ENV["STATE_OLD"] changed', 'ENV["STATE_NEW?"] set', 'ENV["STATE_GONE"] deleted'].each do |text|
      assert_includes(changes, text)
    end
    refute_match(/secret/, changes.join)
  ensure
    %w[STATE_OLD STATE_GONE].each { |name| ENV.delete(name) }
  end

  def test_two_that_have_made_the_same_change_say_the_same_of_it
    tokens = %w[1 1 2].map { |text| in_child { token_of { ENV["STATE_NEW"] = text } } }

    assert_equal(tokens[0], tokens[1])
    refute_equal(tokens[0], tokens[2])
    assert_match(/\A\h{1,16}\z/, tokens[0])
  end

  def test_a_directory_that_is_renamed_is_the_same_one_and_cannot_be_put_back_by_its_name
    Dir.mktmpdir do |folder|
      answers = in_child do
        Dir.chdir(Dir.mkdir("#{folder}/a").then { "#{folder}/a" })
        before = State.take
        File.rename("#{folder}/a", "#{folder}/b")
        same = State.take == before
        Dir.chdir("/")
        [same, State.changes(before, State.take).map(&:restorable?)]
      end

      assert_equal([true, [false]], answers)
    end
  end

  def test_what_can_be_put_back
    answers = in_child do
      before = State.take
      File.umask(0o777)
      Dir.chdir("/")
      ENV["STATE_NEW"] = "1"
      changes = State.changes(before, State.take)
      good, others = changes.partition(&:restorable?)
      good.each(&:put_back)
      [good.map(&:key).sort, others.map(&:key), State.changes(before, State.take).map(&:key)]
    end

    assert_equal([%w[directory umask], ["env STATE_NEW"], ["env STATE_NEW"]], answers)
  end

  def test_what_libraries_do_on_their_first_use
    customary = in_child do
      before = State.take
      ENV["STATE_NEW"] = "1"
      File.umask(0o777)
      trap("WINCH") { nil }
      trap("ALRM", "IGNORE")
      State.changes(before, State.take).select(&:customary?).map(&:key).sort
    end

    assert_equal(["env STATE_NEW", "signal WINCH"], customary)
  end

  private

  # @return [Array<String>] the changes that the block makes in a child
  def changed
    in_child do
      File.umask(0o022)
      before = State.take
      yield
      State.changes(before, State.take).map(&:to_s)
    end
  end

  def token_of
    before = State.take
    yield
    State.changes(before, State.take).first.token
  end
end
