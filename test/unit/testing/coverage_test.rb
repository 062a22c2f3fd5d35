# frozen_string_literal: true

require "test_helper"
require "pando/testing"
require "json"
require "tmpdir"

# In children, for coverage is of a whole process.
class TestingCoverageTest < Minitest::Test
  SCRIPT = <<~RUBY
    require "coverage"
    require "json"
    require "pando/testing"
    Coverage.start(**eval(ARGV.fetch(0)))
    load ARGV.fetch(1)
    tested(true)
    coverage = Pando::Testing::Coverage
    2.times do |index|
      coverage.before_fork
      fork do
        coverage.take_over
        tested(index.zero?)
        peeked = Coverage.peek_result
        result = Coverage.result.fetch(ARGV.fetch(1))
        raise "not the same" unless peeked.fetch(ARGV.fetch(1)) == result
        puts JSON.generate(result.is_a?(Hash) ? result.transform_values { |one| one.is_a?(Hash) ? one.values : one } : result)
      end
      Process.wait
    end
  RUBY
  TESTED = <<~RUBY
    def tested(yes)
      if yes
        :yes
      else
        :no
      end
    end
  RUBY

  def test_lines
    assert_equal [[1, 2, 2, nil, 0, nil, nil], [1, 2, 1, nil, 1, nil, nil]], results("{}")
  end

  def test_lines_branches_and_methods
    first, second = results("{ lines: true, branches: true, methods: true }")

    assert_equal [1, 2, 2, nil, 0, nil, nil], first.fetch("lines")
    assert_equal [[2, 0]], first.fetch("branches").map(&:values)
    assert_equal [2], first.fetch("methods")
    assert_equal [[1, 1]], second.fetch("branches").map(&:values)
  end

  def test_lines_that_are_told_once
    first, second = results("{ oneshot_lines: true }")

    assert_equal [1, 2, 3], first.fetch("oneshot_lines").sort
    assert_equal [1, 2, 3, 5], second.fetch("oneshot_lines").sort
  end

  private

  def results(mode)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "tested.rb")
      File.write(path, TESTED)
      output = IO.popen([Gem.ruby, *$LOAD_PATH.flat_map { |one| ["-I", one] }, "-e", SCRIPT, mode, path], &:read)
      output.lines.first(2).map { |line| JSON.parse(line) }
    end
  end
end
