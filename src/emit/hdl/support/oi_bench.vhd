-- oi_bench.vhd: what the test bench shares: bytes of the standard input as streams, streams as
-- records on the standard output, and random stalls on both sides.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use ieee.math_real.all;

package oi_bench is
  type oi_bytes is file of character;
  type oi_sizes is array (natural range <>) of natural;

  type oi_random is record
    seed1, seed2 : positive;
    stalls       : boolean; -- else no beat ever waits
  end record;

  procedure oi_get(file f : oi_bytes; value : out natural);
  -- Sends a tensor: the elements of `depth` words of `width` bits.
  procedure oi_send(file f : oi_bytes; depth, width : in positive; random : inout oi_random;
                    signal clk : in std_logic; signal tdata : out std_logic_vector;
                    signal tvalid : out std_logic; signal tready : in std_logic);
  -- Receives one and writes it as a record: its kind, name and dims, then the elements.
  procedure oi_receive(file f : oi_bytes; kind : in character; name : in string;
                       dims : in oi_sizes; bytes, depth, width : in positive;
                       random : inout oi_random; signal clk : in std_logic;
                       signal tdata : in std_logic_vector; signal tvalid, tlast : in std_logic;
                       signal tready : out std_logic);
  procedure oi_put_number(file f : oi_bytes; kind : in character; bytes, value : in natural);

  -- Whole tensors as beats: a tensor as it lies in the file; the same as a record.
  procedure oi_get_beat(file f : oi_bytes; signal beat : out std_logic_vector);
  procedure oi_put_beat(file f : oi_bytes; kind : in character; name : in string;
                        dims : in oi_sizes; bytes : in positive; beat : in std_logic_vector);
  -- Sends two tensors in turn, `n` beats in all. `first` is the clock in which the first one went.
  procedure oi_send_beats(n : in positive; one, two : in std_logic_vector; random : inout oi_random;
                          signal clk : in std_logic; signal clock : in natural;
                          signal first : out natural; signal tdata : out std_logic_vector;
                          signal tvalid : out std_logic; signal tready : in std_logic);
  -- Receives them; every second one is the same. Without stalls the first comes after `latency`
  -- clocks, further ones after `interval` clocks each; or after up to `most`, where others wait.
  procedure oi_receive_beats(n : in positive; latency, interval, most : in natural;
                             random : inout oi_random; signal clk : in std_logic; signal clock, sent : in natural;
                             signal one, two : inout std_logic_vector;
                             signal tdata : in std_logic_vector; signal tvalid, tlast : in std_logic;
                             signal tready : out std_logic);
end package;

package body oi_bench is

  procedure oi_get(file f : oi_bytes; value : out natural) is
    variable c : character;
  begin
    read(f, c);
    value := character'pos(c);
  end procedure;

  procedure put_integer(file f : oi_bytes; bytes, value : in natural) is
    variable left : natural;
  begin
    left := value;
    for i in 1 to bytes loop
      write(f, character'val(left mod 256));
      left := left / 256;
    end loop;
  end procedure;

  procedure put_head(file f : oi_bytes; kind : in character; name : in string;
                     rank, bytes : in natural) is
  begin
    put_integer(f, 8, character'pos(kind));
    put_integer(f, 8, name'length);
    put_integer(f, 8, rank);
    put_integer(f, 8, bytes);
    for i in name'range loop
      write(f, name(i));
    end loop;
  end procedure;

  procedure oi_put_number(file f : oi_bytes; kind : in character; bytes, value : in natural) is
  begin
    put_head(f, kind, "", 0, bytes);
    put_integer(f, bytes, value);
    flush(f);
  end procedure;

  -- One clock in three waits.
  procedure stall(random : inout oi_random; waits : out boolean) is
    variable r : real;
  begin
    waits := false;
    if random.stalls then
      uniform(random.seed1, random.seed2, r);
      waits := r < 0.33;
    end if;
  end procedure;

  procedure oi_send(file f : oi_bytes; depth, width : in positive; random : inout oi_random;
                    signal clk : in std_logic; signal tdata : out std_logic_vector;
                    signal tvalid : out std_logic; signal tready : in std_logic) is
    variable bits  : unsigned(71 downto 0) := (others => '0');
    variable have  : natural := 0;
    variable byte  : natural;
    variable waits : boolean;
  begin
    for e in 1 to depth loop
      while have < width loop
        oi_get(f, byte);
        bits := bits or shift_left(to_unsigned(byte, 72), have);
        have := have + 8;
      end loop;
      stall(random, waits);
      while waits loop
        wait until rising_edge(clk);
        stall(random, waits);
      end loop;
      tdata  <= std_logic_vector(bits(width - 1 downto 0));
      tvalid <= '1';
      wait until rising_edge(clk) and tready = '1';
      tvalid <= '0';
      bits := shift_right(bits, width);
      have := have - width;
    end loop;
  end procedure;

  procedure oi_receive(file f : oi_bytes; kind : in character; name : in string;
                       dims : in oi_sizes; bytes, depth, width : in positive;
                       random : inout oi_random; signal clk : in std_logic;
                       signal tdata : in std_logic_vector; signal tvalid, tlast : in std_logic;
                       signal tready : out std_logic) is
    variable bits  : unsigned(71 downto 0) := (others => '0');
    variable have  : natural := 0;
    variable waits : boolean;
  begin
    put_head(f, kind, name, dims'length, bytes);
    for twice in 1 to 2 loop -- what there is room for, and what is in use
      for i in dims'range loop
        put_integer(f, 8, dims(i));
      end loop;
    end loop;
    for e in 1 to depth loop
      stall(random, waits);
      while waits loop
        wait until rising_edge(clk);
        stall(random, waits);
      end loop;
      tready <= '1';
      wait until rising_edge(clk) and tvalid = '1';
      assert (tlast = '1') = (e = depth) report name & ": tlast on the wrong beat" severity failure;
      tready <= '0';
      bits := bits or shift_left(resize(unsigned(tdata), 72), have);
      have := have + width;
      while have >= 8 loop
        write(f, character'val(to_integer(bits(7 downto 0))));
        bits := shift_right(bits, 8);
        have := have - 8;
      end loop;
    end loop;
    if have > 0 then
      write(f, character'val(to_integer(bits(7 downto 0))));
    end if;
    tready <= '0';
  end procedure;

  procedure oi_get_beat(file f : oi_bytes; signal beat : out std_logic_vector) is
    variable bits : std_logic_vector((beat'length + 7) / 8 * 8 - 1 downto 0);
    variable byte : natural;
  begin
    for i in 0 to (beat'length + 7) / 8 - 1 loop
      oi_get(f, byte);
      bits(8 * i + 7 downto 8 * i) := std_logic_vector(to_unsigned(byte, 8));
    end loop;
    beat <= bits(beat'length - 1 downto 0);
  end procedure;

  procedure oi_put_beat(file f : oi_bytes; kind : in character; name : in string;
                        dims : in oi_sizes; bytes : in positive; beat : in std_logic_vector) is
    variable bits : std_logic_vector(8 * bytes - 1 downto 0) := (others => '0');
  begin
    put_head(f, kind, name, dims'length, bytes);
    for twice in 1 to 2 loop
      for i in dims'range loop
        put_integer(f, 8, dims(i));
      end loop;
    end loop;
    bits(beat'length - 1 downto 0) := beat;
    for i in 0 to bytes - 1 loop
      write(f, character'val(to_integer(unsigned(bits(8 * i + 7 downto 8 * i)))));
    end loop;
  end procedure;

  procedure wait_stalls(random : inout oi_random; signal clk : in std_logic;
                        signal offers : out std_logic) is
    variable waits : boolean;
  begin
    stall(random, waits);
    while waits loop
      offers <= '0';
      wait until rising_edge(clk);
      stall(random, waits);
    end loop;
    offers <= '1';
  end procedure;

  procedure oi_send_beats(n : in positive; one, two : in std_logic_vector; random : inout oi_random;
                          signal clk : in std_logic; signal clock : in natural;
                          signal first : out natural; signal tdata : out std_logic_vector;
                          signal tvalid : out std_logic; signal tready : in std_logic) is
  begin
    for i in 1 to n loop
      wait_stalls(random, clk, tvalid);
      if i mod 2 = 1 then
        tdata <= one;
      else
        tdata <= two;
      end if;
      wait until rising_edge(clk) and tready = '1';
      if i = 1 then
        first <= clock;
      end if;
    end loop;
    tvalid <= '0';
  end procedure;

  procedure oi_receive_beats(n : in positive; latency, interval, most : in natural;
                             random : inout oi_random; signal clk : in std_logic; signal clock, sent : in natural;
                             signal one, two : inout std_logic_vector;
                             signal tdata : in std_logic_vector; signal tvalid, tlast : in std_logic;
                             signal tready : out std_logic) is
    variable beat : std_logic_vector(tdata'range);
    variable came : natural;
  begin
    for i in 1 to n loop
      wait_stalls(random, clk, tready);
      wait until rising_edge(clk) and tvalid = '1';
      beat := tdata;
      came := clock;
      assert tlast = '1' report "tlast is missing" severity failure;
      wait for 0 ns; -- `sent` may change in this clock
      assert random.stalls or (came - sent >= latency + (i - 1) * interval and
                               came - sent <= latency + (i - 1) * most)
        report "beat " & integer'image(i) & " took " & integer'image(came - sent) &
               " clocks, which the plan does not predict"
        severity failure;
      if i = 1 then
        one <= beat;
      elsif i = 2 then
        two <= beat;
      elsif i mod 2 = 1 then
        assert beat = one report "a beat differs from an equal one before" severity failure;
      else
        assert beat = two report "a beat differs from an equal one before" severity failure;
      end if;
    end loop;
    tready <= '0';
  end procedure;
end package body;
