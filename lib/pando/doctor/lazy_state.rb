# frozen_string_literal: true

require "json"
require "pando/doctor/lazy_state/forked_run"
require "pando/doctor/lazy_state/observation"
require "pando/fork_safety/finding"
require "pando/native"

module Pando
  module Doctor
    # Finds state that an application builds only when a request needs it: memos, constants, files, methods, templates.
    # Each worker builds and keeps a copy of its own, which the mold could have made once for all of them.
    #
    #     result = Pando::Doctor::LazyState.examine { |number| app.call(env) }
    #     result.findings # => [#<Pando::ForkSafety::Finding ...>, ...]
    #     result.figures  # => { requests: [...], lines: [...], classes: [...], pages: {...} }
    #
    # docs/lazy-state.md explains the measurement and the result.
    module LazyState
      # How often the same request is sent: the first one is compared with the others.
      REQUESTS = 6

      class << self
        # Serves the requests in forked children, so that this process does not change: one child for the objects, one
        # for the private memory, one for the calls, because the first one's tracing would show in the others.
        #
        # @param requests [Integer] of the same kind, 2 or more
        # @param root [String] folder of the application's own files
        # @param timeout [Numeric] seconds for a child
        # @param prepare [#call, nil] called in each child first: for the work of a worker's hooks
        # @param sample [#call, nil] serves fewer requests than the block, for the tables of private memory and calls;
        #   it is called like the block
        # @param parallel [Boolean] whether the children run at the same time; false if they would use the same
        #   inherited descriptor
        # @yieldparam number [Integer] 1 for the first request; the block serves it to its end
        # @return [Result]
        # @raise [ForkedRun::Failed] the child for the objects failed or took too long. If another child does, its table
        #   is missing, and the figure :undone has the reason
        def examine(requests: REQUESTS, root: Dir.pwd, timeout: ForkedRun::TIMEOUT, prepare: nil, sample: nil,
                    parallel: true, &request)
          ForkedRun.new(timeout: timeout, prepare: prepare, parallel: parallel)
                   .run(root, requests, sample || request, &request)
        end

        # The same in this process, without private memory and calls. The process must have served nothing yet, and
        # should not be used afterwards.
        #
        # @return [Result]
        # @raise the requests' exceptions
        def observe(requests: REQUESTS, root: Dir.pwd, &request)
          Observation.new(root).run(requests, &request)
        end

        # For a process that gets its requests from outside: call it before the first request, {between} two, and
        # {after} the last one. After a single request all that it has left counts as lazy, and nothing as growth.
        #
        # @return [nil]
        def before(root: Dir.pwd)
          @observation = Observation.new(root)
          @observation.start
          nil
        end

        # @return [nil]
        def between
          @observation.next_request
          nil
        end

        # @return [Hash{Symbol => Object}] findings: Array<ForkSafety::Finding>, figures: Hash
        def after
          result = @observation.finish
          { findings: result.findings, figures: result.figures }
        ensure
          @observation = nil
        end
      end

      # Findings and figures. A child sends them to its parent as JSON.
      class Result
        # @return [Array<ForkSafety::Finding>] the largest first
        attr_reader :findings
        # @return [Hash{Symbol => Object}] tables, ready for JSON
        attr_reader :figures

        # @param text [String]
        # @return [Result] the one that {#to_json} wrote
        def self.parse(text)
          known = JSON.parse(text, symbolize_names: true)
          new(known[:findings].map { |finding| ForkSafety::Finding.parse(finding) }, known[:figures])
        end

        def initialize(findings, figures)
          @findings = findings
          @figures = figures
        end

        # @return [String]
        def to_json(*) = JSON.generate({ findings: findings.map(&:to_h), figures: figures })
      end

      # The sizes from which a finding is reported. docs/lazy-state.md lists them.
      module Thresholds
        # Bytes that one line keeps, for a note.
        NOTE = 4096
        # Bytes for a warning: each worker has to build that much, and does not share it.
        WARNING = 256 * 1024
        # Loaded files for a warning.
        FILES = 20
        # Methods that a line outside of the application defines, for a note.
        METHODS = 10

        # @return [Symbol] the severity for state that was built once
        def self.severity(bytes) = bytes >= WARNING ? :warning : :note

        # @return [String] for a human
        def self.size(bytes)
          return "#{bytes} bytes" if bytes < 1024

          value, unit = bytes < 1024 * 1024 ? [bytes / 1024.0, "KiB"] : [bytes / 1_048_576.0, "MiB"]
          format(value < 10 ? "%<value>.1f %<unit>s" : "%<value>.0f %<unit>s", value: value, unit: unit)
        end

        # @return [String] "1 file", "12,345 files"
        def self.count(number, noun)
          "#{number.to_s.gsub(/(?<=\d)(?=(?:\d{3})+\z)/, ",")} #{noun}#{"s" unless number == 1}"
        end
      end
    end
  end
end
