# frozen_string_literal: true

require "fcntl"

module Pando
  module Cluster
    # Opens and closes one listening socket; the rules differ between TCP and UNIX.
    #
    # @api private
    module ListenerSocket
      module_function

      # @raise [BootError]
      def open(spec)
        socket = spec.tcp? ? open_tcp(spec) : open_unix(spec)
        socket.close_on_exec = true
        # Many wake up for one connection: those that come late must not wait.
        socket.fcntl(Fcntl::F_SETFL, socket.fcntl(Fcntl::F_GETFL) | Fcntl::O_NONBLOCK)
        socket
      rescue Errno::EADDRINUSE
        raise BootError, "cannot listen on #{spec}: another process listens there; stop it or choose another address"
      rescue SystemCallError, SocketError => e
        raise BootError, "cannot listen on #{spec}: #{e.message}"
      end

      def open_tcp(spec)
        address = Addrinfo.tcp(spec.host, spec.port)
        listening(Socket.new(address.afamily, :STREAM, 0), spec, address) do |socket|
          socket.setsockopt(:SOCKET, :REUSEADDR, 1)
          socket.setsockopt(:IPV6, :V6ONLY, 1) if address.ipv6?
          # Accepted sockets inherit it: no extra call per connection.
          socket.setsockopt(:TCP, :NODELAY, 1) if spec.tcp_nodelay
          socket.setsockopt(:TCP, Listeners::TCP_DEFER_ACCEPT, spec.defer_accept.to_i) if spec.defer_accept
        end
      end

      def open_unix(spec)
        remove_stale(spec.path) if spec.kind == :unix
        name = spec.kind == :abstract ? "\0#{spec.path}" : spec.path
        masked(spec) { listening(Socket.new(:UNIX, :STREAM, 0), spec, Socket.sockaddr_un(name)) }
      end

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

      # A file left by a killed server is removed; one that somebody serves is not.
      def remove_stale(path)
        return unless File.exist?(path)
        raise BootError, "cannot listen on unix:#{path}: a file that is not a socket is there" unless File.socket?(path)

        served?(path) ? raise(Errno::EADDRINUSE) : File.unlink(path)
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

      # @return [String] as the config writes it
      def name(socket, spec)
        return spec.to_s unless spec.tcp?

        address = socket.local_address
        host = address.ipv6? ? "[#{address.ip_address}]" : address.ip_address
        "#{host}:#{address.ip_port}"
      end

      # Nobody is let in any more, whoever else has the socket open.
      def refuse(socket)
        socket.shutdown
      rescue Errno::ENOTCONN, Errno::EINVAL
        nil # it is shut already
      end

      # Of a listening TCP socket, the number that tcp_info calls tcpi_unacked is the length of its queue.
      # @return [Integer, nil]
      def waiting(socket)
        return if socket.local_address.unix?

        socket.getsockopt(:TCP, :INFO).data.unpack1("x24L")
      end

      # @return [Array(Integer, Integer), nil] what tells the file of a UNIX socket from any other
      def file(spec)
        return unless spec.kind == :unix

        stat = File.lstat(spec.path)
        [stat.dev, stat.ino]
      rescue SystemCallError
        nil # somebody tidied up before us
      end

      # The number of a file is not used again while its socket is open.
      # @param file [Array, nil] see .file: another server may have put its own there since
      def close(socket, spec, file)
        File.unlink(spec.path) if file && file == self.file(spec)
      rescue SystemCallError
        nil # somebody tidied up before us
      ensure
        socket.close
      end
    end
  end
end
