# frozen_string_literal: true

module Pando
  module Swarm
    # Writes the stack traces of all threads to stderr. May be called in a signal handler, so it takes no lock and uses
    # no logger.
    #
    # @api private
    module Stacks
      FRAMES = 50

      # @param reason [String, nil]
      def self.write(reason = nil)
        head = "pid #{Process.pid}#{": #{reason}" if reason}"
        text = Thread.list.map { |thread| "#{head}: #{name(thread)}\n#{frames(thread)}" }.join
        $stderr.write(text)
      rescue SystemCallError, IOError
        nil # stderr is closed
      end

      def self.name(thread)
        "#{thread.name || (thread == Thread.main ? "main thread" : "a thread without a name")}, #{thread.status}"
      end

      def self.frames(thread) = Array(thread.backtrace).first(FRAMES).map { |frame| "    #{frame}\n" }.join
      private_class_method :name, :frames
    end
  end
end
