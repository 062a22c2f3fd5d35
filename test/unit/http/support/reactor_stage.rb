# frozen_string_literal: true

require "socket"
require "support/c_program"
require "tmpdir"

module HTTPSupport
  # A reactor with a monitor and workers that the test controls step by step: test/c/reactor_stage.c, with sanitizers if
  # the compiler has them. PANDO_STAGE_UNDER is a prefix for the command: valgrind and its options, for example, which
  # need a program without sanitizers. With PANDO_LEAKS it looks for leaks when it ends, two thirds of its CPU time:
  # .ci/run sets it for one of its Rubies.
  class ReactorStage
    SOURCES = %w[http/*.c sys/fds.c sys/process.c sys/record.c sys/sealed.c].freeze
    PATIENCE = 90
    ENVIRONMENT = ENV.key?("PANDO_LEAKS") ? {} : { "ASAN_OPTIONS" => "detect_leaks=0" }.freeze

    Request = Struct.new(:lane, :epoch, :turn, :flags, :head_bytes, :body_bytes, :file_bytes, :remote, :data) do
      def head = data.byteslice(0, head_bytes)
      def body = data.byteslice(head_bytes, body_bytes)
      def path = data[/\A\S+ (\S+)/, 1]
      def body_in_file? = flags.anybits?(1)
      def all_in_file? = flags.anybits?(2)
      def retry? = flags.anybits?(4)
      def chunked? = flags.anybits?(8)
      def last? = flags.anybits?(16)
      def streamed? = flags.anybits?(128)
      def half_closed? = flags.anybits?(64)
      def id = "#{lane} #{epoch} #{turn}"
    end

    # @return [Array<String>]
    def self.under = ENV.fetch("PANDO_STAGE_UNDER", "").split

    attr_reader :listener

    # @param files [Integer] limit of open files
    # @param sanitizers [Array<String>] none for measurements of memory
    def initialize(listener, files: 1024, sanitizers: Support::CProgram::ADDRESS, **settings)
      @listener = listener
      arguments = settings.map { |name, value| "#{name}=#{value}" }
      under = self.class.under
      program = Support::CProgram.path("reactor_stage", SOURCES, sanitizers: under.empty? ? sanitizers : [])
      @pipe = IO.popen([ENVIRONMENT, *under, program, listener.fileno.to_s, *arguments,
                        { listener.fileno => listener, rlimit_nofile: files }], "r+")
      @pipe.binmode
      await("record 16 0") { tell("report") }
    end

    # @return [String] the stage's answer
    def tell(*words)
      @pipe.puts(words.join(" "))
      @pipe.wait_readable(PATIENCE) || raise("no word from the stage about #{words.first}")
      (@pipe.gets || raise("the stage has ended at #{words.join(" ")[0, 60]}")).chomp
    end

    def await(expected)
      said = yield
      raise "expected #{expected}, got #{said}" unless said == expected
    end

    def ok(*words) = await("ok") { tell(*words) }
    def open(*lanes) = lanes.each { |lane| ok("open", lane) }

    # @return [Request, nil] the oldest in the queue, which now belongs to the lane
    def take(lane, patience: 60)
      words = tell("take", lane, (patience * 1000).to_i).split
      return if words.first == "none"

      numbers = words[1..6].map { |word| Integer(word) }
      Request.new(lane, *numbers, words[7], bytes(words[8]))
    end

    def data(request, text) = ok("data", request.id, text.unpack1("H*"))
    def interim(request, text) = ok("interim", request.id, text.unpack1("H*"))
    def half_closed?(request) = tell("half_closed", request.id) == "1"
    def try(request, text) = tell("try", request.id, text.unpack1("H*"))
    def finish(request, keep: true) = ok("end", request.id, keep ? 1 : 0)

    def answer(request, body = "hello", keep: true)
      data(request, "HTTP/1.1 200 OK\r\ncontent-length: #{body.bytesize}\r\n\r\n#{body}")
      finish(request, keep: keep)
    end

    # @return [Array(String, String), "gone"] the record from the lane's socket, and its bytes
    def want(what, request) = receive(request, "want_#{what}")

    def receive(request, verb = "receive")
      words = tell(verb, request.id).split
      return "gone" if words == ["gone"]

      [words[0..-2].join(" "), bytes(words.last)]
    end

    def send_file(request, path, bytes)
      ok("pass", request.id, path)
      ok("file", request.id, bytes)
    end

    # @return [Hash{String => Integer}] the reactor's counters
    def stats = tell("stats").split.each_slice(2).to_h { |name, count| [name, Integer(count)] }

    # @return [Array<Integer>] of a pool, to requests with the method of this number, by class of status
    def answers(pool, method) = tell("answers", pool, method).split.map(&:to_i)

    # @return [Integer] the reactor's exit status
    def wait = tell("wait").to_i

    def quit
      @pipe.puts("quit")
      @pipe.close
    rescue Errno::EPIPE, IOError
      nil
    end

    private

    def bytes(hex) = hex == "-" ? "".b : [hex].pack("H*")
  end
end
