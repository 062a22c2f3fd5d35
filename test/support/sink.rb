# frozen_string_literal: true

require "openssl"
require "socket"
require "stringio"
require "zlib"

module Support
  # A stand-in for the servers that libraries talk to. It accepts HTTP and UDP on its own ports, stores everything that
  # arrives, and responds to HTTP requests according to the given rules.
  #
  #     sink = Sink.new(%r{/api} => "[]")
  #     sink.wait_for("needle")
  class Sink
    include Waiting

    # One HTTP request, or one UDP packet (then the path is nil). The head contains the fields, one per line, with names
    # in lower case.
    Record = Struct.new(:path, :head, :body) do
      # @param text [String, Regexp]
      def include?(text)
        [body, head, path].compact.any? { |part| text.is_a?(Regexp) ? part.match?(text) : part.include?(text) }
      end
    end

    # @return [Integer]
    attr_reader :port, :tls_port, :udp_port

    # @param answers [Hash{Regexp => String, #call}] body by path; a block gets the record and returns the whole
    #   response, or writes to the socket itself and returns nil
    def initialize(answers = {})
      @answers = answers
      @records = []
      @lock = Mutex.new
      @server = TCPServer.new("127.0.0.1", 0)
      @udp = UDPSocket.new.tap { |socket| socket.bind("127.0.0.1", 0) }
      @tls = listen_with_tls
      @port = @server.addr[1]
      @tls_port = @tls.addr[1]
      @udp_port = @udp.addr[1]
      @threads = [Thread.new { accept(@server) }, Thread.new { accept(@tls) }, Thread.new { receive }]
    end

    # Writes the certificate of the TLS port into a folder.
    #
    # @return [String] its path
    def certificate_path(folder)
      File.join(folder, "sink.pem").tap { |path| File.write(path, @certificate.to_pem) }
    end

    def url = "http://127.0.0.1:#{port}"

    # @return [Array<Record>]
    def records = @lock.synchronize { @records.dup }

    # Waits for a record that includes this text.
    #
    # @param path [Regexp, nil] of the request
    # @return [Record]
    def wait_for(text, path: nil, timeout: PATIENCE)
      wait_until(timeout: timeout, message: -> { "#{text.inspect}; there came #{summary}" }) do
        records.find { |record| (path.nil? || path.match?(record.path.to_s)) && record.include?(text) }
      end
    end

    def close
      @threads.each(&:kill)
      [@server, @tls, @udp].each(&:close)
    end

    private

    def listen_with_tls
      key = OpenSSL::PKey::RSA.new(2048)
      @certificate = certificate(key)
      context = OpenSSL::SSL::SSLContext.new
      context.add_certificate(@certificate, key)
      OpenSSL::SSL::SSLServer.new(TCPServer.new("127.0.0.1", 0), context)
    end

    def certificate(key)
      OpenSSL::X509::Certificate.new.tap do |one|
        one.version = 2
        one.serial = 1
        one.subject = one.issuer = OpenSSL::X509::Name.parse("/CN=127.0.0.1")
        one.public_key = key.public_key
        one.not_before = Time.now - 60
        one.not_after = Time.now + 86_400
        factory = OpenSSL::X509::ExtensionFactory.new(one, one)
        one.add_extension(factory.create_extension("basicConstraints", "CA:TRUE", true))
        one.add_extension(factory.create_extension("subjectAltName", "IP:127.0.0.1"))
        one.sign(key, "SHA256")
      end
    end

    def accept(server)
      loop do
        socket = server.accept
        @threads << Thread.new { serve(socket) }
      rescue OpenSSL::SSL::SSLError, SystemCallError
        next # a client that left at once
      end
    end

    def receive
      loop { keep(Record.new(nil, nil, @udp.recv(65_536))) }
    end

    def keep(record) = @lock.synchronize { @records << record }

    def serve(socket)
      while (line = socket.gets)
        headers = headers(socket)
        record = Record.new(line.split[1].to_s, headers.map { |field| field.join(": ") }.join("\n"),
                            unpack(body(socket, headers), headers["content-encoding"]))
        keep(record)
        answer(socket, record)
      end
    rescue SystemCallError, IOError, OpenSSL::SSL::SSLError
      nil # the client has left
    ensure
      socket.close
    end

    def headers(socket)
      found = {}
      while (line = socket.gets&.chomp) && !line.empty?
        name, value = line.split(/:\s*/, 2)
        found[name.downcase] = value
      end
      found
    end

    def body(socket, headers)
      return chunks(socket) if headers["transfer-encoding"]&.include?("chunked")

      socket.read(headers["content-length"].to_i).to_s
    end

    # Each chunk is stored at once, because some clients never end their request.
    def chunks(socket)
      text = +"".b
      while (size = socket.gets&.to_i(16))&.positive?
        chunk = socket.read(size)
        keep(Record.new("chunk", nil, chunk))
        text << chunk
        socket.gets
      end
      socket.gets
      text
    end

    def unpack(body, encoding)
      case encoding
      when "gzip" then Zlib::GzipReader.new(StringIO.new(body)).read.b
      when "deflate" then Zlib.inflate(body).b
      else body.b
      end
    rescue Zlib::Error
      body.b
    end

    def answer(socket, record)
      found = @answers.find { |path, _| path.match?(record.path) }&.last || "{}"
      found = found.call(record, socket) if found.respond_to?(:call)
      return unless found

      socket.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" \
                   "Content-Length: #{found.bytesize}\r\n\r\n#{found}")
    end

    def summary
      records.map { |record| "#{record.path || "udp"} #{record.body[0, 60].inspect}" }.tally.first(40).to_h
    end
  end
end
