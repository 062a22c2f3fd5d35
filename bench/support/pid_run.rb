# frozen_string_literal: true

# The program that bench/pid runs on each Ruby: `ruby pid_run.rb SECONDS ROUNDS` prints a description and its figures as
# JSON.

$LOAD_PATH.unshift(File.expand_path("..", __dir__))

require "json"
require "support/bundle"

module Bench
  # All ways on the running Ruby, each in a process that has loaded only what it needs.
  module PidRun
    PROBE = File.join(__dir__, "pid_probe.rb")
    GEMFILE = File.expand_path("../gems/pid/Gemfile", __dir__)
    LIB = File.join(Bundle::CHECKOUT, "lib")
    CACHED = "Process.pid, pid_cache"

    class << self
      # @return [Hash{String => Array<Float>}] nanoseconds by way
      def call(seconds, rounds)
        alone = probe({}, [], seconds, rounds, "$$", "Process.pid", "$$ != pid")
        cached = probe(gems, [], seconds, rounds, "Process.pid")
        ours = probe({}, ["-I", LIB, "-rpando/fork_safety"], seconds, rounds, "Pando.pid", "ForkCheck")
        { "$$" => alone["$$"], "Process.pid" => alone["Process.pid"], CACHED => cached["Process.pid"],
          "Pando.pid" => ours["Pando.pid"], "$$ != pid" => alone["$$ != pid"], "ForkCheck" => ours["ForkCheck"] }
      end

      private

      # Installs the bundle before the gem is required.
      def gems
        environment = Bundle.new("pid", GEMFILE).prepare.environment
        environment.merge("RUBYOPT" => "#{environment["RUBYOPT"]} -rpid_cache")
      end

      def probe(environment, options, seconds, rounds, *names)
        command = [environment, Gem.ruby, "-W0", *options, PROBE, seconds, rounds, *names]
        output = IO.popen(command, &:read)
        raise Bundle::Failed, "#{command.drop(1).join(" ")} failed" unless Process.last_status.success?

        JSON.parse(output)
      end
    end
  end
end

begin
  puts JSON.generate(ruby: RUBY_DESCRIPTION, ways: Bench::PidRun.call(*ARGV))
rescue Bench::Bundle::Failed => e
  abort e.message
end
