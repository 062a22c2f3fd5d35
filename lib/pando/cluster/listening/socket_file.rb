# frozen_string_literal: true

require "socket"

module Pando
  module Cluster
    module Listening
      # The place of a UNIX socket in the file system, which one server at a time may take: between the look whether
      # somebody serves what is there and one's own listen(2), another one that starts would see the same.
      #
      # Used by ListenerSocket, in the monitor.
      #
      # @api private
      module SocketFile
        # Seconds that another server has for it. Who may read a folder may lock it, and for ever.
        PATIENCE = 5.0
        PAUSE = 0.01

        class << self
          # @param path [String]
          # @param patience [Float] seconds
          # @yield when nobody is there; it is to be bound and listened on meanwhile
          # @return [Object] what the block returns
          # @raise [BootError] a file is there that is no socket
          # @raise [Errno::EADDRINUSE] somebody serves it
          def take(path, patience: PATIENCE)
            folder = locked(File.dirname(path), patience)
            remove_stale(path)
            yield
          ensure
            folder&.close
          end

          # @param path [String]
          # @return [Integer, nil] the process that listens there; nil: none does, or it cannot be told
          def holder(path)
            socket = Socket.new(:UNIX, :STREAM, 0)
            return unless socket.connect_nonblock(Socket.sockaddr_un(path), exception: false) == 0

            pid = socket.getsockopt(:SOCKET, :PEERCRED).data.unpack1("i")
            pid if pid.positive? # 0: it is of another PID namespace
          rescue SystemCallError, ArgumentError
            nil
          ensure
            socket&.close
          end

          private

          # @return [File, nil] the lock ends when it is closed; nil: there is none to be had here
          def locked(path, patience)
            folder = File.new(path)
            deadline = Sys.now + patience
            sleep(PAUSE) until folder.flock(File::LOCK_EX | File::LOCK_NB) || Sys.now > deadline
            folder
          rescue SystemCallError
            folder&.close
          end

          # A file left by a killed server is removed; one that somebody serves is not.
          def remove_stale(path)
            return unless File.exist?(path)
            raise BootError, "cannot listen on unix:#{path}: what is there is not a socket" unless File.socket?(path)

            served?(path) ? raise(Errno::EADDRINUSE) : File.unlink(path)
          rescue Errno::ENOENT
            nil # its server has just removed it
          end

          # Without waiting for room in its queue: one that is full is somebody's.
          def served?(path)
            socket = Socket.new(:UNIX, :STREAM, 0)
            socket.connect_nonblock(Socket.sockaddr_un(path), exception: false)
            true
          rescue Errno::ECONNREFUSED
            false
          rescue Errno::EAGAIN
            true
          ensure
            socket&.close
          end
        end
      end
    end
  end
end
