# frozen_string_literal: true

require "json"
require "minitest"

module Support
  # Reports the result of a test file to the runner (run.rb): counts, failures and CPU time, in a separate file, so that
  # nothing that a test prints can be mistaken for them.
  class Results < Minitest::AbstractReporter
    def initialize(path)
      super()
      @path = path
      @counts = { "passed" => 0, "failed" => 0, "skipped" => 0 }
      @failures = []
    end

    def record(result)
      @counts[outcome(result)] += 1
      @failures << { "file" => file_of(result), "text" => result.to_s.scrub } if outcome(result) == "failed"
    end

    def report
      File.write(@path, JSON.generate("counts" => @counts, "failures" => @failures, "cpu" => cpu))
    end

    def passed?
      @counts["failed"].zero?
    end

    private

    # Its own seconds, and those of the servers that it has seen end.
    def cpu = Process.times.to_a.sum

    # The test itself may be in a module that several files share.
    def file_of(result)
      Object.const_source_location(result.klass)&.first || result.source_location.first
    end

    def outcome(result)
      return "passed" if result.passed?

      result.skipped? ? "skipped" : "failed"
    end
  end
end
