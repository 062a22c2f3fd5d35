# frozen_string_literal: true

module Pando
  module Cluster
    # Watches a file that users touch to reload the application, such as tmp/restart.txt. Owned by the monitor.
    class RestartFile
      # Seconds between two looks.
      INTERVAL = 1.0

      # @param options [Options] read at each look, since a reload may change the path
      def initialize(options)
        @options = options
        @seen = modified
        @next = Sys.now + INTERVAL
      end

      def due = (@next if @options.restart_file)

      # @yieldparam path [String] if it has been touched since the last look
      def proceed
        return if due.nil? || Sys.now < @next

        @next = Sys.now + INTERVAL
        before = @seen
        @seen = modified
        yield @options.restart_file if @seen && @seen != before
      end

      private

      def modified
        path = @options.restart_file
        [path, File.mtime(path)] if path
      rescue SystemCallError
        nil
      end
    end
  end
end
