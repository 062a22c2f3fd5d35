# frozen_string_literal: true

require "open3"
require "rbconfig"
require "support/waiting"
require_relative "../../bench/support/bundle"

module Support
  # A run of a suite in test/fixtures/testing, with the framework's own executable, in a separate process.
  #
  #   run = Support::SuiteRun.minitest("counts_test.rb", every: 3)
  #   run.output, run.status
  class SuiteRun
    include Waiting

    CHECKOUT = File.expand_path("../..", __dir__)
    FOLDER = File.join(CHECKOUT, "test/fixtures/testing")
    WITHIN = 60 # seconds

    class << self
      # @param file [String] in test/fixtures/testing/minitest
      def minitest(file, *arguments, **options, &block)
        new(command(file, *arguments), **options, &block)
      end

      # @return [Array<String>]
      def command(file, *arguments) = [Gem.ruby, "-W1", *library, File.join(FOLDER, "minitest", file), *arguments]

      # @return [Hash{String => String, nil}]
      def environment(every:, strict: false, bundle: own_bundle)
        bundle.environment.merge("PANDO_REFORK_EVERY" => every.to_s, "PANDO_REFORK_STRICT" => strict ? "1" : "0",
                                 "SEED" => nil, "TESTOPTS" => nil, "MT_CPU" => "2", "N" => nil)
      end

      # @param arguments [Array<String>] as for rspec
      def rspec(*arguments, **options, &block)
        new([Gem.ruby, "-W1", *library, rspec_executable, *arguments], **options, &block)
      end

      # @return [Bench::Bundle]
      def own_bundle = @own_bundle ||= Bench::Bundle.new("testing", File.join(FOLDER, "Gemfile")).prepare

      def rspec_executable = @rspec_executable ||= own_bundle.executable("rspec-core", "rspec")

      # @return [Array<String>]
      def library = ["-I", File.join(CHECKOUT, "lib")]

      # @return [String] folder of a gem in the bundle
      def gem(name)
        script = "print Gem::Specification.find_by_name(#{name.dump}).gem_dir"
        IO.popen([own_bundle.environment, Gem.ruby, "-e", script], &:read)
      end
    end

    # @return [String] of stdout, of stderr
    attr_reader :output, :errors
    # @return [Process::Status]
    attr_reader :status

    # @param command [Array<String>]
    # @param every [Integer] tests between two reforks
    # @param strict [Boolean]
    # @yieldparam pid [Integer] of the run
    # @yieldparam run [SuiteRun]
    # @yieldparam out [IO] for #read_until
    def initialize(command, every:, strict: false, env: {}, bundle: self.class.own_bundle, dir: FOLDER)
      env = self.class.environment(every: every, strict: strict, bundle: bundle).merge(env)
      Open3.popen3(env, *command.map(&:to_s), chdir: dir, pgroup: true) do |input, out, err, waiter|
        input.close
        @output = +""
        @errors = nil
        errors = Thread.new { err.read }
        begin
          yield waiter.pid, self, out if block_given?
        rescue Exception # rubocop:disable Lint/RescueException
          Process.kill(:KILL, -waiter.pid)
          raise
        end
        finish(out, errors, waiter)
      end
    end

    # Continues reading until the output matches.
    def read_until(out, pattern)
      wait_until(timeout: WITHIN, message: -> { "#{pattern.inspect} in:\n#{@output}" }) do
        chunk = out.read_nonblock(65_536, exception: false)
        @output << chunk if chunk.is_a?(String)
        @output[pattern]
      end
    end

    # @return [Array<(Integer, Integer)>] number and generation of each test, in the order in which they ran
    def ran = output.scan(/<(\d+) of (\d+)/).map { |pair| pair.map(&:to_i) }
    def to_s = "#{status}\n#{output}\n#{errors}"

    private

    def finish(out, errors, waiter)
      reader = Thread.new { out.read }
      unless reader.join(WITHIN) && errors.join(WITHIN) && waiter.join(WITHIN)
        Process.kill(:KILL, -waiter.pid)
        raise Waiting::TimedOut, "the suite did not end:\n#{@output}#{reader.value}\n#{errors.value}"
      end
      @output << reader.value
      @errors = errors.value
      @status = waiter.value
    end
  end
end
