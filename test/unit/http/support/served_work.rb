# frozen_string_literal: true

require "pando/cluster"
require "pando/http"
require "socket"
require_relative "fake_worker"

module HTTPSupport
  # How a test talks to a server; it needs the method `connect`.
  module Exchanges
    # Sends bytes, optionally ends the sending side, reads to the end.
    def exchange(bytes, finish: false)
      socket = connect
      socket.write(bytes)
      socket.shutdown(:WR) if finish
      Answer.new(read_all(socket))
    ensure
      socket&.close
    end

    def get(path = "/", fields = "", version: "1.1", verb: "GET")
      exchange("#{verb} #{path} HTTP/#{version}\r\nHost: example.com\r\n#{fields}\r\n")
    end

    def post(body, fields = "Content-Length: #{body.bytesize}\r\n")
      exchange("POST / HTTP/1.1\r\nHost: example.com\r\n#{fields}\r\n#{body}")
    end

    private

    # A reset is a failure here.
    def read_all(socket)
      raise "no answer in time" unless socket.wait_readable(90)

      socket.read
    end
  end

  # For tests that talk to one, which is ended after the test.
  module Serving
    def teardown
      @served&.stop
    end

    # @return [ServedWork]
    def serve(app = nil, **settings, &block)
      @served = ServedWork.new(app || block, **settings).start
    end
  end

  # A Work that serves its own listener in a thread of this process, as a worker does with an epoll.
  class ServedWork
    include Exchanges

    attr_reader :worker, :work, :listener

    def initialize(app, unix: nil, **settings)
      @listener = unix ? listening_socket(:UNIX, Addrinfo.unix(unix)) : tcp
      @listener.listen(1024)
      @worker = FakeWorker.new
      @wake, @stop = IO.pipe
      start_work(app, **settings)
    end

    def start_work(app, proxied: false, **settings)
      listener = Pando::Cluster::Listening::Listener.new(@listener, proxied: proxied)
      @work = Pando::HTTP::DirectHandler.new(app, [listener], HTTPSupport.settings(**settings))
      @work.start(@worker)
    end

    def tcp = listening_socket(:INET, Addrinfo.tcp("127.0.0.1", 0))

    def listening_socket(family, address)
      Socket.new(family, :STREAM).tap { |socket| socket.bind(address) }
    end

    def start
      @thread = Thread.new do
        serve
      rescue Exception => e # rubocop:disable Lint/RescueException
        @failure = e
      end
      self
    end

    def serve
      loop do
        readable, = IO.select([@listener, @wake])
        return if readable.include?(@wake)

        @work.ready(@work.sources.first.first)
      end
    end

    # Raises the error that ended the thread early.
    def stop
      @stop.close
      raise "the work hangs" unless @thread.nil? || @thread.join(90)
      raise @failure if @failure
    ensure
      [@wake, @listener].each(&:close)
    end

    def end_loop = @stop.close

    def connect
      @listener.local_address.connect
    end
  end

  # The parsed bytes of one response.
  class Answer
    attr_reader :bytes, :status, :fields, :body

    def initialize(bytes)
      @bytes = bytes
      head, @body = bytes.split("\r\n\r\n", 2)
      line, *fields = head.to_s.split("\r\n")
      @status = line && Integer(line[%r{\AHTTP/1\.1 (\d{3}) }, 1] || raise("malformed status line #{line.inspect}"))
      @fields = fields.map { |field| field.split(": ", 2) }
    end

    def [](name)
      @fields.select { |field, _| field.downcase == name }.map(&:last).then { |all| all.size > 1 ? all : all.first }
    end

    def closed_without_answer? = @bytes.empty?

    def chunks
      chunks = []
      rest = @body
      until rest.empty?
        size, rest = rest.split("\r\n", 2)
        chunks << rest.slice!(0, size.hex)
        raise "chunk without end" unless rest.slice!(0, 2) == "\r\n"
        return chunks if size == "0"
      end
      raise "no last chunk"
    end
  end
end
