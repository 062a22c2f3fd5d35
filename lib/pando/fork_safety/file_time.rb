# frozen_string_literal: true

module Pando
  module ForkSafety
    # The times at which files were made, to tell those of an older process from those of one's own. Used by the doctor
    # and by strict test mode, in the process that deletes a file.
    module FileTime
      A_MOMENT = 0.001 # seconds: a tick takes from one to ten
      private_constant :A_MOMENT

      class << self
        # The kernel takes the times of files from a coarse clock or, from 6.13 on, from one that is up to a tick ahead.
        # @return [Integer] nanoseconds: not after the times of files to come
        def now = Process.clock_gettime(Process::CLOCK_REALTIME_COARSE, :nanosecond)

        # Waits for the next tick.
        # @return [Integer] nanoseconds: after the times of all files so far, and not after those of files to come
        def tick
          last = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)
          sleep A_MOMENT until now > last
          now
        end

        # @return [Integer] nanoseconds
        # @raise [SystemCallError] there is no such file
        def made(path) = birth(path) || nanoseconds(File.ctime(path))

        # @return [Integer, nil] nanoseconds; nil: the file system does not record it
        def birth(path)
          nanoseconds(File.birthtime(path))
        rescue NotImplementedError
          nil
        end

        # @return [Integer] nanoseconds: when the content changed last
        def written(path) = nanoseconds(File.mtime(path))

        private

        def nanoseconds(time) = (time.to_i * 1_000_000_000) + time.nsec
      end
    end
  end
end
