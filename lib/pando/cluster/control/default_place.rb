# frozen_string_literal: true

require "pando/cluster/listening/listener_socket"
require "pando/errors"

module Pando
  module Cluster
    class Control
      # Where the control socket is that nobody has named. Its folder is made: one that is named is the user's to make,
      # for a slip in the name would make another.
      #
      # Used by Control, in the monitor.
      #
      # @api private
      module DefaultPlace
        # What to do without it.
        ADVICE = "pando status cannot ask this server: write control \"PATH\" into the config file, with a path in a " \
                 "folder that it may write to and that no other server uses"

        class << self
          # @param path [String] of the socket
          # @raise [BootError] there is no such place, or another server has it
          def prepare(path)
            make(File.dirname(path))
            pid = Listening::SocketFile.holder(path) or return

            raise BootError, "another Pando of this folder runs (pid #{pid}) and has #{path}"
          end

          private

          def make(folder)
            Dir.mkdir(folder) unless File.directory?(folder)
          rescue Errno::EEXIST
            nil # another server has just made it, or it is no folder: whoever opens the socket will say so
          rescue SystemCallError => e
            raise BootError, "there is no folder #{folder}, and it cannot be made: #{e.message}"
          end
        end
      end
    end
  end
end
