# frozen_string_literal: true

require "json"
require "tempfile"

module Support
  # A process with the gems of test/fixtures/swarm/brokers that talks to a broker for a test, see console.rb there.
  class BrokerConsole
    FIXTURES = File.expand_path("../fixtures/swarm/brokers", __dir__)
    ANSWER_WITHIN = 60 # seconds

    # @param jobs [String] file in that folder @param environment [Hash] of the bundle and for the jobs
    def initialize(jobs, environment)
      @errors = Tempfile.new("console")
      command = [RbConfig.ruby, "-W0", File.join(FIXTURES, "console.rb"), File.join(FIXTURES, jobs)]
      @io = IO.popen(environment, command, "r+", err: @errors.path)
    end

    # @param ruby [String] one line, evaluated in Console
    # @return [Object] converted to JSON and back
    def call(ruby)
      @io.puts(ruby)
      raise "no answer to #{ruby}" unless @io.wait_readable(ANSWER_WITHIN)

      answer = @io.gets or raise "#{ruby}: #{File.read(@errors.path)}"
      JSON.parse(answer).first
    end

    def close
      @io.close
      @errors.unlink
    end
  end
end
