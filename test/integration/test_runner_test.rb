# frozen_string_literal: true

require "test_helper"
require "open3"
require "tmpdir"
require "support/run"

# bin/test's own promises: a failure that does not come again is named and forgiven, any other one is not.
class TestRunnerTest < Minitest::Test
  FAILS_ONCE = <<~RUBY
    require "test_helper"
    class %<name>sTest < Minitest::Test
      def test_passes = assert(true)
      def test_fails_once
        passed = File.exist?("%<mark>s")
        File.write("%<mark>s", "")
        assert(passed, "the first time")
      end
    end
  RUBY
  FAILS_ALWAYS = <<~RUBY
    require "test_helper"
    class BrokenTest < Minitest::Test
      def test_fails = flunk("each time")
    end
  RUBY
  RUNNER = Support::Checkout.path("test/support/run.rb")
  ON_IDLE_CPUS = <<~RUBY.freeze
    require "#{RUNNER}"
    Support::IdleCPUs.define_method(:count) { 2.0 }
    exit Support::TestRun.new(ARGV).run
  RUBY

  # Passes once as many of these run at the same time.
  MEETS = <<~RUBY
    require "test_helper"
    class %<name>sTest < Minitest::Test
      def test_meets
        File.write("%<mark>s", "")
        wait_until { Dir["%<folder>s/*.mark"].size == %<count>s }
        assert(true)
      end
    end
  RUBY
  TELLS_CPUS = <<~RUBY
    require "test_helper"
    class %<name>sTest < Minitest::Test
      def test_tells = assert_operator(File.write("\#{__FILE__}.cpus", Etc.nprocessors.to_s), :>, 0)
    end
  RUBY
  TELLS_YJIT = <<~RUBY
    require "test_helper"
    class %<name>sTest < Minitest::Test
      def test_tells = assert_operator(File.write("\#{__FILE__}.yjit", ENV.fetch("RUBY_YJIT_ENABLE", "none")), :>, 0)
    end
  RUBY
  DIES_ONCE = <<~RUBY
    require "test_helper"
    class DyingTest < Minitest::Test
      def test_dies_once
        return assert(true) if File.exist?("%<mark>s")
        File.write("%<mark>s", "")
        exit!(3)
      end
    end
  RUBY

  def setup = @folder = Dir.mktmpdir("pando-run")
  def teardown = FileUtils.rm_rf(@folder)

  def test_a_file_that_passes_when_it_runs_again_is_flaky_and_the_run_passes
    output, status = run_tests(file("once", FAILS_ONCE, name: "Once"))

    assert_predicate status, :success?, output
    assert_match(/^=== Flaky tests/, output)
    assert_match(/^\S*once_test.rb:$/, output)
    assert_includes output, "the first time"
    assert_equal "2 passed, 0 failed", output.lines.last.chomp
  end

  def test_a_file_that_fails_again_fails_the_run
    output, status = run_tests(file("broken", FAILS_ALWAYS), file("once", FAILS_ONCE, name: "Once"))

    refute_predicate status, :success?
    assert_match(/^=== Failed tests\n\nFailure:\nBrokenTest#test_fails/, output)
    assert_match(/^=== Flaky tests/, output)
    assert_equal "2 passed, 1 failed", output.lines.last.chomp
  end

  def test_a_process_that_died_may_be_flaky_too
    output, status = run_tests(file("dying", DIES_ONCE))

    assert_predicate status, :success?, output
    assert_match(/^=== Flaky tests/, output)
    assert_includes output, "exit 3"
    assert_equal "1 passed, 0 failed", output.lines.last.chomp
  end

  def test_many_failures_are_no_accident
    files = Array.new(Support::TestRun::RETRIES + 1) { |i| file("once#{i}", FAILS_ONCE, name: "Once#{i}") }
    output, status = run_tests("-j", "4", *files)

    refute_predicate status, :success?
    assert_includes output, "too many to run them again"
    assert_equal "#{files.size} passed, #{files.size} failed", output.lines.last.chomp
  end

  def test_of_several_files_in_one_process_those_that_failed_run_again
    files = [file("a", FAILS_ONCE, name: "A"), file("b", FAILS_ALWAYS), file("c", FAILS_ONCE, name: "C")]
    process = Support::TestProcess.new(files, [], @folder)
    process.run(File::NULL)

    assert_equal [[files[0]], [files[1]], [files[2]]], process.retries.map(&:files).sort
    assert_equal [2, 3], process.counts.values_at("passed", "failed")
  end

  def test_the_idle_time_of_the_cpus_is_counted_since_the_last_look
    stat = File.join(@folder, "stat")
    File.write(stat, "cpu  300 0 50 1000 7 0 3 0 0 0\ncpu0 100 0 50 1000 7 0 3 0 0 0\ncpu1 200 0 0 0 0 0 0 0 0 0\n")
    one = Support::IdleCPUs.new([0], stat: stat)
    idle = Support::IdleCPUs.new([0, 1], stat: stat)
    File.write(stat, "cpu  420 0 60 1060 17 0 3 0 0 0\ncpu0 120 0 60 1060 17 0 3 0 0 0\ncpu1 300 0 0 0 0 0 0 0 0 0\n")

    assert_in_delta(0.6, one.count)
    assert_in_delta(0.6, idle.count)
    assert_in_delta(0.0, idle.count)
  end

  # Each waits until all run.
  def test_idle_cpus_run_more_processes_than_there_are_jobs
    skip "on one CPU, one process runs at a time" if Support::TestRun::EXTRA.zero?
    count = Support::TestRun::JOBS + Support::TestRun::EXTRA
    files = Array.new(count) { |i| file("meets#{i}", MEETS, name: "Meets#{i}", folder: @folder, count: count.to_s) }
    output, status = ruby("-e", ON_IDLE_CPUS, *files)

    assert_predicate status, :success?, output
    refute_match(/Flaky/, output)
    assert_equal "#{count} passed, 0 failed", output.lines.last.chomp
  end

  # A file that runs alone has all of them.
  def test_several_files_have_one_cpu_each
    skip "there is only one" if Etc.nprocessors == 1
    FileUtils.mkdir_p(%w[chaos integration].map { |name| File.join(@folder, "test", name) })
    names = { "A" => "test/integration/one", "B" => "test/integration/two", "C" => "test/chaos/three" }
    one, two, chaos = names.map { |name, path| file(path, TELLS_CPUS, name: name) }
    all = Etc.nprocessors
    { [one, two, chaos] => [1, 1, all], [one, two, "-a"] => [all, all], [one] => [all] }.each do |arguments, cpus|
      output, status = run_tests("-j", "2", *arguments)

      assert_predicate status, :success?, output
      assert_equal(cpus, arguments.grep(/rb\z/).map { |path| Integer(File.read("#{path}.cpus")) })
    end
  end

  def test_what_needs_all_cpus_is_not_pinned
    needy = Dir[Support::Checkout.path("test/integration/*_bench_test.rb")]
    needy << Support::Checkout.path("test/unit/cluster/tree_test.rb")

    assert_operator(needy.size, :>, 3)
    assert(needy.none? { |file| Support::TestProcess.new([file], [], @folder).pinnable? })
    one = Support::Checkout.path("test/integration/example_test.rb")
    assert_predicate(Support::TestProcess.new([one], [], @folder), :pinnable?)
  end

  def test_what_reforks_runs_under_yjit
    FileUtils.mkdir_p(%w[integration/rails chaos].map { |name| File.join(@folder, "test", name) })
    names = { "Refork" => "integration/refork_auto", "Rails" => "integration/rails/one", "Chaos" => "chaos/one",
              "Stats" => "integration/access_stats" }
    files = names.map { |name, path| file("test/#{path}", TELLS_YJIT, name: name) }
    { nil => %w[1 1 1 none], "1" => %w[1 1 1 1], "0" => %w[none none none none] }.each do |wanted, told|
      output, status = run_tests(*files, env: { "RUBY_YJIT_ENABLE" => wanted })

      assert_predicate status, :success?, output
      assert_equal(told, files.map { |path| File.read("#{path}.yjit") })
    end
  end

  # The kernel may list some that the machine could have.
  def test_the_allowed_cpus_are_online
    status, stat = %w[status stat].map { |name| File.join(@folder, name) }
    File.write(status, "Cpus_allowed:\tff\nCpus_allowed_list:\t0-1,4,6-127\n")
    File.write(stat, "cpu 2 2\ncpu0 1 1\ncpu1 1 1\ncpu2 1 1\ncpu4 1 1\nintr 5\n")

    assert_equal([0, 1, 4], Support::CPUs.allowed(status, stat))
    File.write(status, "Name:\truby\n")
    assert_equal([0, 1, 2, 4], Support::CPUs.allowed(status, stat))
  end

  def test_each_process_is_pinned_to_the_cpu_with_the_fewest
    cpus = Support::PinnedCPUs.new([0, 1, 4])
    three = cpus.hold { |first| cpus.hold { |second| cpus.hold { |third| [first, second, third] } } }

    assert_equal [0, 1, 4], three
    assert_equal([1, 1], cpus.hold { Array.new(2) { cpus.hold { |cpu| cpu } } })
    assert_equal(0, cpus.hold { |cpu| cpu })
  end

  private

  def file(name, text, **values)
    path = File.join(@folder, "#{name}_test.rb")
    values[:mark] = File.join(@folder, "#{name}.mark")
    File.write(path, text.gsub(/%<(\w+)>s/) { values.fetch(Regexp.last_match(1).to_sym) })
    path
  end

  def run_tests(*arguments, env: {}) = ruby(RUNNER, *arguments, env: env)
  def ruby(*arguments, env: {}) = Open3.capture2e(env, RbConfig.ruby, "-rbundler/setup", *arguments)
end
