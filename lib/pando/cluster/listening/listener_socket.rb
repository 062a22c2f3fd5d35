# frozen_string_literal: true

require "fcntl"
require "socket"

module Pando
  module Cluster
    module Listening
      # Functions on one listening socket; the rules differ between TCP and UNIX. Used in the monitor.
      module ListenerSocket
        # The kernel's constant, which Ruby's Socket does not name on every platform (tcp(7)).
        TCP_DEFER_ACCEPT = 9

        module_function

        # @param dual [Boolean] whether "::" covers all IPv4 addresses as well (ipv6(7))
        # @raise [BootError]
        def open(spec, dual: true)
          prepare(spec.tcp? ? open_tcp(spec, dual) : open_unix(spec))
        rescue Errno::EADDRINUSE
          raise BootError, "cannot listen on #{spec}: another process listens there; stop it or choose another address"
        rescue Errno::ENOENT
          raise BootError, "cannot listen on #{spec}: there is no folder #{File.dirname(spec.path)}; make it first"
        rescue SystemCallError, SocketError => e
          raise BootError, "cannot listen on #{spec}: #{e.message}"
        end

        # Many processes wake up for one connection. The late ones must not block.
        def prepare(socket)
          socket.close_on_exec = true
          socket.fcntl(Fcntl::F_SETFL, socket.fcntl(Fcntl::F_GETFL) | Fcntl::O_NONBLOCK)
          socket
        end

        def open_tcp(spec, dual)
          address = Addrinfo.tcp(spec.host, spec.port)
          listening(Socket.new(address.afamily, :STREAM, 0), spec, address) do |socket|
            socket.setsockopt(:SOCKET, :REUSEADDR, 1)
            socket.setsockopt(:IPV6, :V6ONLY, dual ? 0 : 1) if address.ipv6?
            # Accepted sockets inherit it: no extra call per connection.
            socket.setsockopt(:TCP, :NODELAY, 1) if spec.tcp_nodelay
            socket.setsockopt(:TCP, TCP_DEFER_ACCEPT, spec.defer_accept.to_i) if spec.defer_accept
          end
        end

        def open_unix(spec)
          return listening_unix(spec, "\0#{spec.path}") if spec.kind == :abstract

          SocketFile.take(spec.path) { masked(spec) { listening_unix(spec, spec.path) } }
        end

        def listening_unix(spec, name) = listening(Socket.new(:UNIX, :STREAM, 0), spec, Socket.sockaddr_un(name))

        def listening(socket, spec, address)
          yield socket if block_given?
          socket.bind(address)
          File.chmod(spec.mode, spec.path) if spec.kind == :unix && spec.mode
          socket.listen(spec.backlog)
          socket
        rescue StandardError
          socket.close
          raise
        end

        def masked(spec)
          before = spec.umask && File.umask(spec.umask)
          yield
        ensure
          File.umask(before) if before
        end

        def server(descriptor)
          kind = Sys.borrow(descriptor, Socket) { |any| any.local_address.unix? ? UNIXServer : TCPServer }
          server = kind.for_fd(descriptor)
          server.close_on_exec = true
          server
        end

        # @return [String] as the config writes it
        def name(socket)
          address = socket.local_address
          return "unix:#{address.unix_path.sub(/\A\0/, "@")}" if address.unix?

          host = address.ipv6? ? "[#{address.ip_address}]" : address.ip_address
          "#{host}:#{address.ip_port}"
        end

        # @return [Boolean] whether it listens where the configuration says
        def at?(socket, spec)
          address = socket.local_address
          return !spec.tcp? && name(socket) == spec.to_s if address.unix?
          return false unless spec.tcp? && address.ip_port == spec.port

          wanted = Addrinfo.tcp(spec.host, spec.port)
          wanted.ip_address == address.ip_address || (wanted.ipv4? && any?(wanted) && any?(address) && both?(socket))
        rescue SocketError
          false # the attempt to open it will say so
        end

        def any?(address) = %w[0.0.0.0 ::].include?(address.ip_address)

        # Whether "::" covers every IPv4 address as well (ipv6(7)).
        def both?(socket) = !socket.getsockopt(:IPV6, :V6ONLY).bool

        # @return [Boolean] whether connections can be accepted from it
        def listens?(socket)
          socket.getsockopt(:SOCKET, :ACCEPTCONN).bool && socket.getsockopt(:SOCKET, :TYPE).int == Socket::SOCK_STREAM
        end

        # Sets the options of another line for the same address.
        def adjust(socket, old, new)
          socket.listen(new.backlog) unless old.backlog == new.backlog
          if new.tcp?
            socket.setsockopt(:TCP, :NODELAY, new.tcp_nodelay ? 1 : 0)
            socket.setsockopt(:TCP, TCP_DEFER_ACCEPT, new.defer_accept.to_i)
          elsif new.kind == :unix && [old.mode, old.umask] != [new.mode, new.umask]
            File.chmod(new.mode || (0o777 & ~(new.umask || File.umask)), new.path)
          end
        end

        # Refuses new connections, even if other processes have the socket open.
        def refuse(socket)
          socket.shutdown
        rescue Errno::ENOTCONN, Errno::EINVAL
          nil # it is shut down already
        end

        # The length of a listening TCP socket's queue, which tcp_info calls tcpi_unacked.
        def waiting(socket)
          return if socket.local_address.unix?

          socket.getsockopt(:TCP, :INFO).data.unpack1("x24L")
        end

        # @return [String, nil] the path of its file, without symbolic links that may change later
        def real_path(spec)
          File.join(File.realpath(File.dirname(spec.path)), File.basename(spec.path)) if spec.kind == :unix && spec.path
        rescue SystemCallError
          nil # it has been removed
        end

        # @return [Array(Integer, Integer), nil] device and inode of the file
        def file(path)
          stat = path && File.lstat(path)
          stat && [stat.dev, stat.ino]
        rescue SystemCallError
          nil # it has been removed
        end

        # Removes the file, unless another server has put its there. An inode is not reused while its socket is open.
        def unlink(path, file)
          File.unlink(path) if file && file == self.file(path)
        rescue SystemCallError
          nil # it has been removed
        end
      end

      # Takes the path of a UNIX socket, one server at a time. Without a lock, two servers that start could both find a
      # stale file there before either of them listens. Used by ListenerSocket, in the monitor.
      module SocketFile
        # Seconds that it waits for another server's lock. Any user who can read a folder can lock it for ever.
        PATIENCE = 5.0
        PAUSE = 0.01

        class << self
          # @yield when no server is there; the block binds the socket and listens
          # @raise [BootError] the file there is not a socket
          # @raise [Errno::EADDRINUSE] another server has it
          def take(path, patience: PATIENCE)
            folder = locked(File.dirname(path), patience)
            remove_stale(path)
            yield
          ensure
            folder&.close
          end

          # @return [Integer, nil] the process that listens there; nil: none, or it is not known
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

          # @return [File, nil] the lock ends when it is closed; nil: there is no lock
          def locked(path, patience)
            folder = File.new(path)
            deadline = Sys.now + patience
            sleep(PAUSE) until folder.flock(File::LOCK_EX | File::LOCK_NB) || Sys.now > deadline
            folder
          rescue SystemCallError
            folder&.close
          end

          # Removes the file of a killed server, but not that of a running one.
          def remove_stale(path)
            return unless File.exist?(path)
            raise BootError, "cannot listen on unix:#{path}: what is there is not a socket" unless File.socket?(path)

            served?(path) ? raise(Errno::EADDRINUSE) : File.unlink(path)
          rescue Errno::ENOENT
            nil # its server has just removed it
          end

          # Does not wait for room in its queue: a full queue belongs to a server.
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
