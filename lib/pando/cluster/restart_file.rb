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
        look
        @next = Sys.now + INTERVAL
      end

      def due = (@next if @options.restart_file)

      # @yieldparam path [String] if it has been touched since the last look; another path is no touch
      def proceed
        return if Sys.now < @next

        @next = Sys.now + INTERVAL
        path = @path
        modified_at = @modified_at
        look
        yield path if @modified_at && @path == path && @modified_at != modified_at
      end

      # A touch since the former image's last look is one for the next image.
      def to_state(state) = state.add("restart_file", path: @path, modified_at: @modified_at)

      # It may have been no file then.
      def from_state(state)
        record = state.any("restart_file") or return
        @path = record.read(:path, :text)
        @modified_at = record.read(:modified_at, :number)
      end

      private

      def look
        @path = @options.restart_file
        @modified_at = (File.mtime(@path).to_f if @path)
      rescue SystemCallError
        @modified_at = nil
      end
    end
  end
end
