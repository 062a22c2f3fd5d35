# frozen_string_literal: true

require "pando/cluster/helper_process"
require "pando/cluster/upgrade/resumption"

module Pando
  module Cluster
    class Upgrade
      # The process in which another image tries whether it could take over (Rehearsal). Its report counts only when
      # all of it can be read. Owned by Upgrade, in the monitor.
      class Probe
        # Seconds for all: the process loads the configuration.
        TIMEOUT = 30.0
        REPORT_BYTES = 4 * 1_048_576

        # The image, or the reason why there is none.
        #
        #   version   of the other Pando
        #   reason    why the image cannot take over, nil: it can
        #   errors    what it wrote to its standard error
        Outcome = Struct.new(:image, :version, :reason, :errors, keyword_init: true)

        # @yield that starts it: yields a command and its variables to a block, in the right folder
        # @raise [Pando::Error, SystemCallError] it cannot be started
        def initialize(state, poller)
          memory = IO.for_fd(Sys.sealed_memory("pando-state", state.to_s))
          descriptors = [memory, HelperProcess::ANSWER, *state.memories] # as Rehearsal expects them
          yield(lambda do |command, variables|
            @process = HelperProcess.new(poller, command, variables.merge(Resumption::VARIABLE => Rehearsal::VALUE),
                                         TIMEOUT, descriptors: descriptors, answer_bytes: REPORT_BYTES)
          end)
        ensure
          memory&.close
        end

        # @return [Outcome, nil] nil: not yet
        def proceed(now = Sys.now)
          return unless @process.proceed(now)

          outcome = @process.late? ? Outcome.new(reason: "it was not ready within #{TIMEOUT.round} s") : judge
          outcome.errors = @process.errors
          outcome
        end

        def due = @process.deadline

        # Its outcome is not needed any more.
        def give_up = @process.abandon

        private

        def judge
          report = @process.answer
          return Outcome.new(reason: silent) if report.empty?

          document = Document.parse(report)
          return Outcome.new(reason: document.one("failed").text(:reason)) if document.any("failed")

          Outcome.new(image: ProcessImage.from_state(document), version: document.one("ready").text(:version))
        rescue Unreadable => e
          Outcome.new(reason: "its report: #{e.message}")
        end

        # Ruby or Bundler may have said why it ended so early.
        def silent
          first = @process.errors.lines.map(&:strip).find { |line| !line.empty? }
          ["it ended before it had read the state", *first].join(": ")
        end
      end
    end
  end
end
