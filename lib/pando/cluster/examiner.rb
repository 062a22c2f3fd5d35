# frozen_string_literal: true

require "pando/cluster/helper_process"

module Pando
  module Cluster
    # Finds out where a process that no longer answers is stuck. A helper process does it, because a debugger takes its
    # time and the files of a stuck process may be stuck as well.
    #
    # Owned by the monitor.
    #
    # @api private
    class Examiner
      # Seconds for one examination.
      TIMEOUT = 10.0
      # Variables that are meant for the application, and not for the helper.
      UNSET = %w[RUBYOPT RUBYLIB LD_PRELOAD DEBUGINFOD_URLS].freeze

      # @param command [Array<String>, nil] see Payload#examination_command
      def initialize(poller, command)
        @poller = poller
        @command = command
        @running = {}
      end

      # @yieldparam text [String, nil] later, or at once when nothing can be found out
      def examine(pid, &finish)
        return yield(nil) unless @command

        @running[HelperProcess.new(@poller, [*@command, pid.to_s], ENV.to_h.except(*UNSET), TIMEOUT)] = finish
      rescue SystemCallError
        yield nil
      end

      # Called at each turn of the monitor's loop.
      def proceed(now = Sys.now)
        @running.keys.each { |helper| finish(helper) if helper.proceed(now) } # rubocop:disable Style/HashEachMethods -- it is changed meanwhile
      end

      def due = @running.keys.map(&:deadline).min

      private

      def finish(helper)
        $stderr.write(helper.errors) unless helper.errors.empty?
        text = helper.answer.force_encoding(Encoding::UTF_8).scrub("?")
        @running.delete(helper).call(text.empty? ? nil : text)
      end
    end
  end
end
