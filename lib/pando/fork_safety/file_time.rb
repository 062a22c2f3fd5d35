# frozen_string_literal: true

module Pando
  module ForkSafety
    # The times at which files were made, to tell those of an older process from those of one's own. Used by the doctor
    # and by strict test mode, in the process that deletes a file.
    module FileTime
      class << self
        # @return [Integer] nanoseconds, by the coarse clock from which the kernel takes the times of files
        def now = Process.clock_gettime(Process::CLOCK_REALTIME_COARSE, :nanosecond)

        # @return [Integer] nanoseconds
        # @raise [SystemCallError] there is no such file
        def made(path)
          nanoseconds(File.birthtime(path))
        rescue NotImplementedError # not every file system records it
          nanoseconds(File.ctime(path))
        end

        private

        def nanoseconds(time) = (time.to_i * 1_000_000_000) + time.nsec
      end
    end
  end
end
