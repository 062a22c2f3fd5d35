# frozen_string_literal: true

require "test_helper"
require "open3"
require "tempfile"
require "tmpdir"
require "pando/fork_safety/audit/sites"

# Tracing changes classes for good: each test has a Ruby of its own.
class AuditSitesTest < Minitest::Test
  SETUP = <<~RUBY
    require "pando/fork_safety"
    require "socket"
    require "net/http"
    Sites = Pando::ForkSafety::Audit::Sites
    def tell(*ios) = ios.each { |io| puts Sites.of(io).inspect }
  RUBY

  def test_the_line_is_known_whatever_the_path_and_the_locale
    Dir.mktmpdir("pando a\u00fc") do |folder|
      File.write(File.join(folder, "opens.rb"), "NULL = File.open(File::NULL)\n")
      script = "#{SETUP}Pando::ForkSafety::Audit.trace; require './opens'; print Sites.of(NULL)"
      ruby = [RbConfig.ruby, "-I", Support::Checkout.path("lib"), "-e", script]
      found, = Open3.capture2({ "LC_ALL" => "C" }, *ruby, chdir: folder)

      assert_equal("#{folder}/opens.rb:1", found.force_encoding(Encoding::UTF_8))
    end
  end

  def test_the_line_of_the_application_is_in_no_gem
    backtrace = %w[/gems/bundler/gems/rack-f00d/lib/rack.rb:1 /gems/gems/rack-3.0.0/lib/rack.rb:2 /app/app.rb:3]

    assert_equal("/app/app.rb:3", Pando::ForkSafety::Audit::Sites.application_line(backtrace))
  end

  def test_each_way_to_make_an_io_is_noted_with_the_line_of_the_application
    lines = run_ruby(<<~RUBY)
      Pando::ForkSafety::Audit.trace
      tell(File.open(__FILE__)) # 7
      tell(File.new(__FILE__)) # 8
      tell(*IO.pipe) # 9
      tell(IO.popen("true")) # 10
      tell(*UNIXSocket.pair) # 11
      tell(IO.for_fd(IO.sysopen(__FILE__))) # 12
      server = TCPServer.new("127.0.0.1", 0) # 13
      tell(server)
      tell(Socket.tcp("127.0.0.1", server.addr[1])) # 15
      tell(server.accept) # 16
      tell(TCPSocket.open("127.0.0.1", server.addr[1])) # 17
      tell(server.accept_nonblock) # 18
      tell(UDPSocket.new) # 19
      copy = File.open(__FILE__, mode: "r", &:dup); tell(copy) # 20
      p server.accept_nonblock(exception: false)
    RUBY

    assert_equal([7, 8, 9, 9, 10, 11, 11, 12, 13, 15, 16, 17, 18, 19, 20],
                 lines[0..14].map { |line| line[/:(\d+)"\z/, 1].to_i })
    assert_equal([":wait_readable"], lines[15..])
  end

  def test_nothing_is_noted_before
    lines = run_ruby(<<~RUBY)
      tell(File.open(__FILE__))
      Pando::ForkSafety::Audit.trace
      tell(File.open(__FILE__)) # 8
    RUBY

    assert_equal(%w[nil 8], lines.map { |line| line[/:(\d+)"\z/, 1] || line })
  end

  def test_blocks_options_and_errors_pass_through
    lines = run_ruby(<<~RUBY)
      Pando::ForkSafety::Audit.trace
      p File.open(__FILE__, "rb", encoding: "utf-16le") { |file| file.external_encoding.name }
      p IO.popen(["cat"], "r+") { |io| io.write("x"); io.close_write; io.read }
      p((File.open("/no/such/file") rescue $!.class))
      p Class.new(File) { def initialize(path) = super(path, "r") }.new(__FILE__).eof?
      p IO.pipe { |reader, _| reader.class }
    RUBY

    assert_equal(['"UTF-16LE"', '"x"', "Errno::ENOENT", "false", "IO"], lines)
  end

  private

  def run_ruby(code)
    Tempfile.create(["app", ".rb"]) do |file|
      file.write(SETUP, code)
      file.flush
      output, status = Open3.capture2e(RbConfig.ruby, "-w", "-I", Support::Checkout.path("lib"), file.path)
      assert(status.success?, output)
      output.lines(chomp: true)
    end
  end
end
