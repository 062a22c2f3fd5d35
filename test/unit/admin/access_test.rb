# frozen_string_literal: true

require "test_helper"
require "fileutils"
require "socket"
require "tmpdir"
require "pando/admin/access"

# Who may do what at the admin addresses.
class AdminAccessTest < Minitest::Test
  TOKEN = "a-token-of-32-characters-or-more"

  def setup
    @folder = Dir.mktmpdir
    @file = File.join(@folder, "token")
    File.write(@file, "#{TOKEN}\n")
    @local = TCPServer.new("127.0.0.1", 0)
    @open = TCPServer.new("0.0.0.0", 0)
  end

  def teardown
    FileUtils.rm_rf(@folder)
    [@local, @open].each(&:close)
  end

  def access(**settings)
    Pando::Admin::Access.new({ "token_file" => @file, **settings.transform_keys(&:to_s) }.compact, {})
  end

  def status(access = self.access, listener: @local, open: false, command: false, **fields)
    env = { "HTTP_HOST" => "localhost:9394", "pando.listener" => listener,
            **fields.to_h { |key, value| ["HTTP_#{key.upcase}", value] } }
    access.check(env, open: open, command: command)&.status
  end

  def test_at_a_local_address_everybody_may_read
    assert_nil(status)
    assert_equal(401, status(command: true))
    assert_nil(status(command: true, authorization: "Bearer #{TOKEN}"))
    assert_nil(status(command: true, authorization: "bearer #{TOKEN}"))
  end

  def test_at_an_open_address_only_what_is_open_to_all
    assert_equal(401, status(listener: @open))
    assert_nil(status(listener: @open, open: true))
    assert_nil(status(listener: @open, authorization: "Bearer #{TOKEN}"))
  end

  def test_wrong_tokens
    ["Bearer #{TOKEN}x", "Bearer #{TOKEN[..-2]}", "Bearer ", "Basic #{TOKEN}", TOKEN, "", "Bearer \xFF"].each do |text|
      assert_equal(401, status(command: true, authorization: text), text)
    end
  end

  def test_a_probe_of_http_1_0_sends_no_host
    assert_nil(access.check({ "pando.listener" => @local }, open: true))
  end

  # No browser can ask there.
  def test_any_host_at_a_unix_socket
    socket = UNIXServer.new(File.join(@folder, "socket"))

    assert_nil(status(listener: socket, host: "admin"))
  ensure
    socket.close
  end

  def test_names_in_host
    %w[localhost LOCALHOST 127.0.0.1 127.0.0.1:80 [::1]:80 10.1.2.3].each do |name|
      assert_nil(status(host: name), name)
    end
    ["evil.example", "localhost.evil.example", "", "1.2.3", "localhost:x", "[::1", "a b"].each do |name|
      assert_equal(421, status(host: name), name)
    end
    assert_nil(status(access(hosts: "pando.internal,other"), host: "Pando.internal:9394"))
  end

  def test_other_origins
    assert_nil(status(origin: "http://localhost:9394"))
    ["http://localhost", "http://evil.example", "null", ""].each { |origin| assert_equal(403, status(origin: origin), origin) }
  end

  def test_a_token_that_is_changed_or_missing
    access = self.access
    File.write(@file, "another-token-of-32-characters-or-more")
    assert_equal(401, status(access, command: true, authorization: "Bearer #{TOKEN}"))
    File.write(@file, "short")
    assert_equal(403, status(access, command: true, authorization: "Bearer short"))
    File.unlink(@file)
    assert_equal(403, status(access, command: true, authorization: "Bearer "))
  end

  def test_a_token_in_the_environment
    access = Pando::Admin::Access.new({ "token_env" => "SECRET" }, { "SECRET" => TOKEN })

    assert_nil(status(access, command: true, authorization: "Bearer #{TOKEN}"))
    assert_equal(403, status(Pando::Admin::Access.new({ "token_env" => "SECRET" }, {}), command: true))
  end

  # A process with the same number was killed meanwhile.
  def test_a_token_is_made_beside_what_a_former_try_has_left
    path = File.join(@folder, "own")
    File.write("#{path}.#{Process.pid}", "half")

    assert_operator(access(token_file: nil, token: path).token.to_s.size, :>=, 32)
  end

  def test_a_token_is_made_once
    path = File.join(@folder, "own")
    first = access(token_file: nil, token: path).token
    assert_operator(first.size, :>=, 32)
    assert_equal(0o600, File.stat(path).mode & 0o777)
    assert_equal(first, access(token_file: nil, token: path).token)
    File.chmod(0o644, path)

    refute_equal(first, access(token_file: nil, token: path).token, "others may have read it")
    assert_nil(access(token_file: nil, token: File.join(@folder, "none/own")).token)
  end
end
