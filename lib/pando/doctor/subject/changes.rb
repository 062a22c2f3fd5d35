# frozen_string_literal: true

require "pando/fork_safety/process_state"

module Pando
  module Doctor
    module Subject
      # Stands before the application in a worker, and finds out which request changes what the kernel keeps of the
      # process.
      #
      # @api private
      class Changes
        State = ForkSafety::ProcessState
        private_constant :State

        # @param app [#call] @param wire [Wire]
        # @param allowed [#call] whether the configuration allows a change
        def initialize(app, wire, allowed)
          @app = app
          @wire = wire
          @allowed = allowed
        end

        def call(env)
          look # an idle worker tries an accept, too
          @request = "#{env["REQUEST_METHOD"]} #{env["PATH_INFO"]}"
          @before = State.take
          @app.call(env)
        end

        # The request is over, and its body sent.
        # @return [nil]
        def look
          before = @before or return
          @before = nil
          changes = State.take.changes_since(before)
          changes.reject { |change| @allowed.call(change) }.each { |change| tell(change) }
          nil
        end

        private

        def tell(change)
          finding = change.finding
          @wire.tell(record: :changed_state, pid: Process.pid, request: @request, key: change.key, change: change.to_s,
                     severity: change.customary? ? :note : finding.severity, advice: finding.advice)
        end
      end
    end
  end
end
