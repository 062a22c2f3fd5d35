# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "net/http"
require "open3"
require "tmpdir"
require_relative "../../bench/support/bundle"

# Promise: off Linux the gem installs, and serves for development from one plain process. The processes under test
# believe that they run on a Mac.
class OtherPlatformTest < Minitest::Test
  FAKE = File.join(Support::Checkout::ROOT, "test/support/fake_platform.rb")
  LIBRARY = Support::Checkout.path("lib")
  PROGRAM = Support::Checkout.path("exe/pando")
  GEMFILE = File.join(Support::Checkout::ROOT, "test/fixtures/apps/plain/Gemfile")
  APP = <<~RUBY
    run lambda { |env|
      names = ENV.values_at("RAILS_ENV", "RACK_ENV", "APP_ENV").uniq.join(" ")
      [200, { "content-type" => "text/plain" }, ["\#{names} \#{env["SERVER_SOFTWARE"]}"]]
    }
  RUBY

  def setup
    @folder = Dir.mktmpdir("pando-elsewhere")
    @home = File.join(@folder, "home")
  end

  def teardown
    if @server
      Process.kill(:KILL, @server.pid)
      @server.close
    end
    FileUtils.rm_rf(@folder)
  end

  def test_the_gem_installs_without_an_extension
    package = build
    output = run_in("gem", "install", "--local", "--no-document", package)

    assert_empty Dir[File.join(@home, "**/pando_ext.so"), File.join(@home, "**/pando-reactor")], output
    assert_includes run_in(File.join(@home, "bin/pando"), "--version"), Pando::VERSION
    assert_equal "true\n", run_in(RbConfig.ruby, "-e", <<~RUBY)
      gem "pando"
      require "pando"
      require "pando/fork_safety"
      require "pando/batch"
      require "pando/pidfd"
      puts Pando.fork_safe?
    RUBY
  end

  def test_bundle_install_passes
    app = File.join(@folder, "app")
    FileUtils.mkdir_p(File.join(app, "vendor/cache"))
    build(File.join(app, "vendor/cache", "pando-#{Pando::VERSION}.gem"))
    File.write(File.join(app, "Gemfile"), %(source "https://rubygems.org"\ngem "pando"\n))

    output = run_in(RbConfig.ruby, Gem.bin_path("bundler", "bundle"), "install", "--local",
                    folder: app, env: { "BUNDLE_PATH" => @home, "GEM_PATH" => nil })
    assert_includes output, "Bundle complete!"
    assert_equal 1, Dir[File.join(@home, "**/gems/pando-#{Pando::VERSION}/lib/pando.rb")].size
    assert_empty Dir[File.join(@home, "**/pando_ext.so")]
  end

  def test_serves_by_puma
    line = serve("plain")
    assert_match(/arm64-darwin23: serving for development from one plain process by puma \d\S*; no workers/, line)
    assert_match(/\Adevelopment puma/, answer)
    Process.kill(:INT, @server.pid) # how Puma ends is its own affair: 8.0 deadlocks now and then
    @server.read
    @server.close
    @server = nil
  end

  def test_serves_by_webrick_where_there_is_no_puma
    line = serve("plain-webrick", without: ["puma"])
    assert_match(/by webrick \d/, line)
    assert_match(/\Adevelopment WEBrick/, answer)
    stop(:TERM)
  end

  # Rails asks RAILS_ENV first.
  def test_the_environment_that_a_flag_names_counts_for_rails_too
    serve("plain-webrick", "-e", "development", without: ["puma"], env: { "RAILS_ENV" => "production" })
    assert_match(/\Adevelopment WEBrick/, answer)
    stop(:TERM)
  end

  def test_names_the_gem_that_is_missing
    write_app
    output, status = pando("--disable=gems")

    assert_equal 1, status.exitstatus
    assert_includes output, "neither puma nor webrick: add `gem \"puma\", group: :development` to the Gemfile"
  end

  def test_refuses_production
    write_app
    output, status = pando("--disable=gems", "-e", "production")

    assert_equal 1, status.exitstatus
    assert_includes output, "Pando serves in production on Linux only, and this is arm64-darwin23"
  end

  def test_commands_that_ask_a_server_say_why_they_cannot
    write_app
    %w[status refork reload upgrade scale drain quiet pages stop doctor swarm].each do |command|
      output, status = pando("--disable=gems", command)

      assert_equal [2, "pando: pando #{command} needs Linux, and this is arm64-darwin23: here Pando serves only for " \
                       "development, in a single process without a cluster\n"], [status.exitstatus, output]
    end
  end

  def test_commands_that_need_no_cluster
    write_app
    FileUtils.mkdir_p(File.join(@folder, "config"))
    File.write(File.join(@folder, "config/puma.rb"), "port 3000\n")

    assert_includes pando("--disable=gems", "init").first, "wrote config/pando.rb from config/puma.rb"
    assert_match(%r{^listen "127\.0\.0\.1:3000" +# config/pando\.rb}, pando("--disable=gems", "config").first)
    assert_includes pando("--disable=gems", "help").first, "Usage: pando"
    output, status = pando("--disable=gems", "--check")
    assert_predicate status, :success?
    assert_match(/^note: this is arm64-darwin23, where Pando serves for development only/, output)
    assert_match(%r{^OK: config/pando\.rb}, output)
  end

  # What an application calls must load there, and do what can be done.
  def test_the_public_methods_work_or_say_why_they_cannot
    assert_equal(<<~TEXT, run_in(RbConfig.ruby, "-w", "-I", LIBRARY, "-e", <<~'RUBY'))
      [:before, :child, :parent]
      [true, false, true]
      [:item, :item]
      [1, true, "now"]
      [false, "Errno::ENOSYS"]
      [3, 0]
      false
    TEXT
      require "pando/fork_safety"
      require "pando/batch"
      require "pando/pidfd"

      reader, writer = IO.pipe
      note = ->(word) { writer.syswrite("#{word}\n") }
      Pando::ForkSafety.register(:test, before: -> { note["before"] }, child: -> { note["child"] },
                                        parent: -> { @parent = true })
      check = Pando::ForkSafety::ForkCheck.new
      Process.wait(fork { note[check.renew]; note[check.forked?]; note[Pando.pid == Process.pid] })
      lines = 5.times.map { reader.gets.chomp }
      p [lines[0].to_sym, lines[1].to_sym, (:parent if @parent)]
      p lines[2..].map { |line| line == "true" }

      Pando::ForkSafety.unregister(:test)
      seen = Queue.new
      thread = Pando::ForkSafety.thread("t") { |one| while (item = one.pop) do seen << item end }
      thread << :item
      first = seen.pop
      Process.wait(fork { exit!(0) })
      thread << :item
      p [first, seen.pop]
      thread.stop

      file = File.open(__FILE__.then { "/dev/zero" })
      kept = File.open("/dev/zero")
      Pando.keep_io(kept, reader, writer)
      Pando.close_all_ios!
      p [kept.read(1).size, file.eof?, Pando.prevent_fork { "now" }]

      error = Pando::Pidfd.new(Process.pid) rescue $!.class.name
      p [Pando::Pidfd.supported?, error]
      result = Pando::Batch.new(threads: 2).run([1, 2, 3]) { |number| number }
      p [result.done.size, result.failed.size]
      Pando.no_longer_fork_safe!("test")
      p Pando.fork_safe?
    RUBY
  end

  def test_a_suite_that_asks_for_reforks_runs_without
    output = run_in(RbConfig.ruby, "-I", LIBRARY, *gem_flags("minitest"), "-e", <<~RUBY)
      require "minitest/autorun"
      require "pando/minitest"
      class OneTest < Minitest::Test
        def test_something = assert(true)
      end
    RUBY

    assert_includes output, "the suite runs without reforks: they need Linux, and this is arm64-darwin23"
    assert_includes output, "1 runs, 1 assertions, 0 failures"
  end

  # Capybara's default is Puma.
  def test_system_tests_are_served_by_capybaras_own_choice
    bundle = Bench::Bundle.new("testing-app", File.expand_path("../fixtures/testing/app/Gemfile", __dir__)).prepare
    output, status = Open3.capture2e({ **bundle.environment, "RUBYOPT" => "-r#{FAKE} -rbundler/setup" },
                                     RbConfig.ruby, "-I", LIBRARY, "-e", <<~RUBY)
                                       require "capybara"
                                       require "pando/capybara"
                                       p Capybara.server.equal?(Capybara.servers[:default])
                                       Capybara.register_server(:default) { |*arguments| p arguments }
                                       Capybara.servers[:pando].call("app", 3001, "localhost")
                                     RUBY

    assert_equal [true, "true\n[\"app\", 3001, \"localhost\"]\n"], [status.success?, output]
  end

  private

  def gem_flags(*names)
    names.flat_map { |name| Gem.loaded_specs.fetch(name).full_require_paths.flat_map { |path| ["-I", path] } }
  end

  def write_app = File.write(File.join(@folder, "config.ru"), APP)

  def build(package = File.join(@folder, "pando.gem"))
    run_in("gem", "build", "pando.gemspec", "--output", package, folder: Support::Checkout.path)
    package
  end

  def pando(*arguments)
    flags, words = arguments.partition { |one| one.start_with?("--disable") }
    Support::Checkout.without_bundle do
      Open3.capture2e(RbConfig.ruby, "-r", FAKE, *flags, "-I", LIBRARY, PROGRAM, *words, chdir: @folder)
    end
  end

  # @return [String] what it says first
  def serve(bundle, *flags, without: [], env: {})
    write_app
    environment = Bench::Bundle.new(bundle, GEMFILE, without: without).prepare.environment.merge(env)
    @port = free_port
    @server = IO.popen([environment.merge("RUBYOPT" => "-r#{FAKE} -rbundler/setup", "WEB_CONCURRENCY" => "3"),
                        RbConfig.ruby, "-I", LIBRARY, PROGRAM, "-l", "127.0.0.1:#{@port}", *flags,
                        { chdir: @folder, err: %i[child out] }])
    @server.gets.tap { wait_until(message: "a listener") { listens? } }
  end

  # @return [String] what it says from then on
  def stop(signal)
    Process.kill(signal, @server.pid)
    output = @server.read
    @server.close
    assert_predicate Process.last_status, :success?, output
    @server = nil
    output
  end

  def listens?
    TCPSocket.new("127.0.0.1", @port).close
    true
  rescue Errno::ECONNREFUSED
    false
  end

  def answer = Net::HTTP.get(URI("http://127.0.0.1:#{@port}/"))

  # Commands of the Ruby that runs the tests, on the platform that is not Linux.
  def run_in(*command, folder: @folder, env: {})
    environment = { "GEM_HOME" => @home, "GEM_PATH" => @home, "HOME" => @folder, "RUBYLIB" => nil,
                    "PATH" => "#{RbConfig::CONFIG["bindir"]}:#{ENV.fetch("PATH")}", "RUBYOPT" => "-r#{FAKE}", **env }
    output, status = Support::Checkout.without_bundle { Open3.capture2e(environment, *command, chdir: folder) }
    assert_predicate(status, :success?, "#{command.join(" ")}:\n#{output}")
    output
  end
end
