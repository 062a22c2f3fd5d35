# frozen_string_literal: true

# The test runner behind bin/test. Unit tests share as many processes as run at once. Each other file runs in its own
# process with a time limit, so that a crash or a hang is one failure and the rest still runs. A file that failed runs
# once more, alone, when all others are done. If it passes then, the run passes and reports it as flaky.

require "etc"
require "json"
require "optparse"
require "rbconfig"
require "tmpdir"
require_relative "cpus"

module Support
  # One test process: its files and their results.
  class TestProcess
    TIME_LIMIT = 1800 # seconds
    KILL_GRACE = 5
    LOADER = "ARGV.shift(ARGV.shift.to_i).each { |file| require file }"
    UNIT = "/test/unit/"
    # They start servers, which mostly wait, and may run on one CPU. Benchmarks and the test of this file look at the
    # machine's CPUs themselves; in tests under load, as in unit tests and campaigns of kills, processes and threads
    # are to run truly at once.
    PINNABLE = %r{/test/integration/(?!(?:\w+_bench|test_runner|refork_under_load|drain|overload|path_pools|
                  reactor_workers|web_sockets|scribbles|poison)_test\.rb\z)}x
    # Reforks, fork safety, measurements and whole apps are tested under YJIT, where Ruby has it. Its compilation would
    # take a quarter of the CPU time of all other files, for nothing that it could change.
    COMPILED = %w[
      allocator bad_generation canary changed_state cow_writers doctor/real_apps first_request_profile fork_audit
      fork_safety full_collections inherited_leak jit lazy_state\w* lean_monitor lost_threads many_generations
      memory_limits mold_death pages path_pools poison pools prefault process_tree refork_\w+ released_mold reload
      ruby_warnings scribbles stack stats threads upgrade \w+_bench (?:apps|measure|rails)/\w+
      swarm/(?:one_tree|pools|refork_nodes|released_mold)
    ].then { |names| %r{/test/(?:chaos/\w+|integration/(?:#{names.join("|")}))_test\.rb\z} }
    YJIT = "RUBY_YJIT_ENABLE" # the variable; to Ruby 3.1 and 3.2, any value of it means yes

    # One failure in a file, for the summary.
    Failure = Struct.new(:file, :text)

    # @param files [Array<String>]
    # @param options [Array<String>] for Minitest
    # @param folder [String] for its results
    def initialize(files, options, folder)
      @files = files
      @options = options
      @folder = folder
      @results = File.join(folder, "#{object_id}.json")
      @failures = []
    end

    # @return [Array<String>]
    attr_reader :files
    # @return [Hash{String => Integer}] after #run: passed, failed and skipped tests
    attr_reader :counts
    # @return [Array<Failure>] after #run
    attr_reader :failures
    # @return [Float] seconds, after #run
    attr_reader :cpu

    # @return [Array<TestProcess>] one for each file that failed; this one again if it did not report which
    def retries
      groups = @failures.all?(&:file) ? @failures.map { |failure| [failure.file] }.uniq : [@files]
      groups.map { |files| TestProcess.new(files, @options, @folder) }
    end

    # @param failure [Failure] of the first run
    # @return [Boolean] whether one of these files caused it
    def caused?(failure) = failure.file ? @files.include?(failure.file) : @files.size > 1

    # @return [Boolean] whether its tests need one CPU only
    def pinnable? = @files.all?(PINNABLE)

    # @param cpu [Integer, nil] the only one that it and its servers may run on
    def run(out, cpu: nil)
      pinned = cpu ? ["taskset", "-c", cpu.to_s, *command] : command
      @pid = spawn(environment, *pinned, out: out, err: out, pgroup: true, in: File::NULL)
      status = wait
      stop # ends what the tests have left behind
      found = results
      @cpu = found.fetch("cpu", 0.0)
      @counts = count(status, found)
    end

    def stop
      Process.kill(:KILL, -@pid) if @pid
    rescue Errno::ESRCH
      # The process has just ended.
    end

    def to_s
      @files.size == 1 ? @files.first.delete_prefix("#{Dir.pwd}/") : "#{@files.size} files of unit tests"
    end

    private

    # Tests that run side by side wait most of the time, so Minitest has as many threads on one CPU as on all.
    def environment
      { "PANDO_TEST_RESULTS" => @results, "MT_CPU" => ENV.fetch("MT_CPU", Etc.nprocessors.to_s),
        YJIT => ("1" if compiled?) }
    end

    def compiled? = ENV.key?(YJIT) ? ENV.fetch(YJIT) == "1" : @files.all?(COMPILED)

    def command
      [RbConfig.ruby, "-rbundler/setup", "-I", "test", "-e", LOADER, @files.size.to_s, *@files, *@options]
    end

    def wait
      waiter = Process.detach(@pid)
      return waiter.value if waiter.join(TIME_LIMIT)

      fail_with("stopped after #{TIME_LIMIT} s")
      Process.kill(:TERM, -@pid)
      stop unless waiter.join(KILL_GRACE)
      waiter.value
    end

    def results
      File.exist?(@results) ? JSON.parse(File.read(@results)) : { "counts" => { "failed" => 1 }, "failures" => [] }
    end

    # A process that left no results, or failed although all its tests passed, counts as a failure.
    def count(status, results)
      counts = Hash.new(0).merge(results["counts"])
      results["failures"].each { |failure| @failures << Failure.new(only_file || failure["file"], failure["text"]) }
      return counts if status.success? || @failures.any?

      fail_with("ended with #{status}")
      counts.merge("failed" => 1)
    end

    def only_file = (@files.first if @files.size == 1)

    def fail_with(reason)
      @failures << Failure.new(only_file, "#{self}: #{reason}")
      warn @failures.last.text
    end
  end

  # Finds the test files, runs them and prints a summary.
  class TestRun
    FOLDERS = %w[unit conformance integration chaos].freeze
    ROOT = File.expand_path("../..", __dir__)
    # What takes longest comes first, so that no long file ends the run alone, on one core.
    LONGEST = %w[
      integration/rails/solid_queue_in_puma integration/libraries/driver_rows integration/doctor/real_apps
      integration/swarm/solid_queue chaos/kernel_outage integration/cable integration/libraries/telemetry_rows
      integration/dashboard integration/libraries/client_rows chaos/chaos integration/doctor/doctor
      integration/queued_work integration/cable_pool integration/doctor/catalogue integration/many_generations
    ].map { |name| "#{ROOT}/test/#{name}_test.rb" }.freeze
    # If this many files fail, it is no coincidence, and running all of them again would take too long.
    RETRIES = 10
    # Unit test files that are worth a process of their own.
    UNITS = 20
    JOBS = Etc.nprocessors
    # So many more may run while the CPUs have time for them: tests that wait for timers would leave them idle. On a
    # slow machine they have none, and there tests would miss their time limits.
    EXTRA = JOBS > 1 ? JOBS : 0
    # CPUs that are idle before one more process starts. A test process takes 0.3 to 0.4 on average.
    ROOM = 0.7
    # Seconds between two looks at the CPUs: a new process has begun its tests by then.
    LOOK = 4

    def initialize(arguments)
      @jobs = JOBS
      @extra = EXTRA
      @pinned = true
      @options = []
      @paths = parser.parse(arguments).map { |path| File.expand_path(path) }
      @total = Hash.new(0)
      @failures = []
      @flaky = []
      @lock = Mutex.new
    rescue OptionParser::ParseError => e
      abort "#{e.message}\n#{parser}"
    end

    # @return [Boolean] whether tests ran and all of them passed
    def run
      Dir.chdir(ROOT)
      Dir.mktmpdir("pando-test") { |folder| run_all(processes(folder)) }
      recall_failures
      name_flaky_files
      puts summary
      @total["failed"].zero? && @total["passed"].positive?
    end

    private

    def parser
      @parser ||= OptionParser.new("Usage: bin/test [FILE or FOLDER...] [options]") do |options|
        options.on("-n", "--name NAME", "only tests of this name or /pattern/") { |name| @options.push("-n", name) }
        options.on("-s", "--seed SEED", Integer, "the order of tests") { |seed| @options.push("-s", seed.to_s) }
        options.on("-v", "--verbose", "each test's name and time") { @options.push("-v") }
        options.on("-j", "--jobs JOBS", Integer, "processes at once (#{JOBS}; on idle CPUs #{EXTRA} more)") do |jobs|
          @jobs = jobs
          @extra = 0
        end
        options.on("-a", "--all-cpus", "no test is pinned to one CPU") { @pinned = false }
      end
    end

    def processes(folder)
      units, others = files.partition { |file| file.start_with?("#{ROOT}#{TestProcess::UNIT}") }
      groups = [*(LONGEST & others), *(others - LONGEST)].map { |file| [file] }
      groups.unshift(*shares(units))
      groups.map { |group| TestProcess.new(group, @options, folder) }
    end

    # Dealt like cards, for the slow files of a folder are often neighbours.
    def shares(units)
      count = (units.size / UNITS).clamp(1, 4 * @jobs)
      units.each_with_index.group_by { |_file, index| index % count }.values.map { |share| share.map(&:first) }
    end

    def files
      return FOLDERS.flat_map { |name| in_folder(File.join(ROOT, "test", name)) } if @paths.empty?

      @paths.flat_map do |path|
        next in_folder(path) if File.directory?(path)

        File.file?(path) ? [path] : abort("no such test file: #{path}")
      end
    end

    def in_folder(path)
      Dir[File.join(path, "**/*_test.rb")]
    end

    def run_all(processes)
      stop_with_us(processes)
      run_side_by_side(processes)
      processes.each { |process| add(process.counts) }
      @failures = processes.flat_map(&:failures)
      retries = processes.select { |process| process.failures.any? }.flat_map(&:retries)
      return puts("-- #{retries.size} files failed: too many to run them again") if retries.size > RETRIES

      stop_with_us(retries)
      retries.each { |process| run_again(process) }
    end

    def run_side_by_side(processes)
      @alone = processes.size == 1 || @jobs == 1
      @cpus = PinnedCPUs.new if @pinned && PinnedCPUs.possible?
      queue = Queue.new(processes).close
      jobs = Array.new(@jobs) { Thread.new { run_next(queue.pop) until queue.empty? } }
      use_idle_cpus(queue, jobs.first)
      jobs.each(&:join)
    end

    # Runs one more process whenever the CPUs have been idle, until the queue is empty and a job ends.
    def use_idle_cpus(queue, job)
      idle = IdleCPUs.new
      extras = []
      until job.join(LOOK)
        room = idle.count > ROOM
        extras.select!(&:alive?)
        extras << Thread.new { run_next(queue.pop) } if room && extras.size < @extra
      end
      extras.each(&:join)
    end

    def run_next(process)
      return unless process

      started = clock
      counts = @alone ? process.run($stdout) : run_quietly(process)
      times = "#{(clock - started).round(1)} s, #{process.cpu.round(1)} s of CPU"
      @lock.synchronize { puts "-- #{process}: #{text(counts)} in #{times}" }
    end

    # Runs them alone: a file that passes now failed by chance, or because of other load.
    def run_again(process)
      puts "-- #{process} failed: once more, alone"
      counts = process.run($stdout)
      puts "-- #{process}, once more: #{text(counts)}"
      return unless counts["failed"].zero? && counts["passed"].positive?

      forgiven, @failures = @failures.partition { |failure| process.caused?(failure) }
      add("failed" => -forgiven.size, "passed" => forgiven.size)
      @flaky << [process, forgiven]
    end

    def add(counts) = @total.merge!(counts) { |_name, sum, count| sum + count }

    def clock
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # For processes that run at once: each one's output is printed in one piece.
    def run_quietly(process)
      reader, writer = IO.pipe
      output = Thread.new { reader.read }
      @cpus && process.pinnable? ? @cpus.hold { |cpu| process.run(writer, cpu: cpu) } : process.run(writer)
      writer.close
      @lock.synchronize { $stdout.write(output.value) }
      process.counts
    end

    def stop_with_us(processes)
      %w[INT TERM].each do |signal|
        trap(signal) do
          processes.each(&:stop)
          exit!(1)
        end
      end
    end

    # Of a long output, often only the end is kept, so the reasons for a failure come last.
    def recall_failures
      puts "", "=== Failed tests", "", @failures.map(&:text).join("\n\n") if @failures.any?
    end

    def name_flaky_files
      return if @flaky.empty?

      puts "", "=== Flaky tests: failed once, passed when run again alone. Mend them before new work.", ""
      @flaky.each { |process, failures| puts "#{process}:", failures.map(&:text).join("\n\n"), "" }
    end

    def summary
      @total["skipped"].positive? ? "#{text(@total)}, #{@total["skipped"]} skipped" : text(@total)
    end

    def text(counts)
      "#{counts["passed"] || 0} passed, #{counts["failed"]} failed"
    end
  end
end

if $PROGRAM_NAME == __FILE__
  $stdout.sync = true
  exit Support::TestRun.new(ARGV).run
end
