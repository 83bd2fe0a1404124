#include <cuda_runtime.h>
#include <cuda.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>
#include <map>
#define CK(x) do{cudaError_t e=(x); if(e){printf("%s: %s\n",#x,cudaGetErrorString(e)); exit(1);} }while(0)
__device__ static void mix(unsigned *state, unsigned words, unsigned scalar, unsigned own) {
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) {
        unsigned value = (scalar + own) * 2654435761u + gridDim.x * 40503u + i;
        if (own & 1) atomicXor(&state[i], value); else atomicAdd(&state[i], value);
    }
}
#define K(n) __global__ void k##n(unsigned*s,unsigned w,unsigned c){mix(s,w,c,n);}
K(0) K(1) K(2) K(3) K(4) K(5) K(6) K(7)
typedef void(*kf)(unsigned*,unsigned,unsigned);
static kf ks[8]={k0,k1,k2,k3,k4,k5,k6,k7};
static unsigned*st; static cudaStream_t S, S2, SP, SN;
static double now(){timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec*1e6+t.tv_nsec*1e-3;}
static void launch(unsigned p,cudaStream_t s){ks[(p*7+p/11)%8]<<<2,32,0,s>>>(st,64,p);}
static cudaGraphExec_t mk(int from,int n,unsigned long long flags,int how){
    cudaGraph_t g; cudaGraphExec_t e;
    if(how==0||how==2){ CK(cudaStreamBeginCapture(S2,cudaStreamCaptureModeThreadLocal)); for(int i=0;i<n;i++)launch(from+i,S2); CK(cudaStreamEndCapture(S2,&g)); }
    else { CK(cudaGraphCreate(&g,0)); cudaGraphNode_t prev=0,nd; unsigned w=64; for(int i=0;i<n;i++){unsigned p=from+i; void*a[]={&st,&w,&p}; cudaKernelNodeParams kp={}; kp.func=(void*)ks[(p*7+p/11)%8]; kp.gridDim=dim3(2); kp.blockDim=dim3(32); kp.kernelParams=a; CK(cudaGraphAddKernelNode(&nd,g,prev?&prev:0,prev?1:0,&kp)); prev=nd;} }
    cudaError_t er=cudaGraphInstantiate(&e,g,flags); if(er){printf("inst flags %llx: %s\n",flags,cudaGetErrorString(er)); cudaGetLastError(); cudaGraphDestroy(g); return 0;}
    cudaGraphUpload(e,S); cudaStreamSynchronize(S); cudaGraphDestroy(g); return e;
}
struct cfg{std::string name; std::vector<int> parts; unsigned long long flags=0; int how=0; int stream=0; int sync=0; std::vector<cudaGraphExec_t> ex; std::vector<double> t,h; double spin=0;};
int main(){
    CK(cudaMalloc(&st,256)); CK(cudaMemset(st,0,256)); CK(cudaStreamCreate(&S)); CK(cudaStreamCreateWithFlags(&S2,cudaStreamNonBlocking)); CK(cudaStreamCreateWithPriority(&SP,cudaStreamNonBlocking,-5)); CK(cudaStreamCreateWithFlags(&SN,cudaStreamNonBlocking));
    for(int i=0;i<8;i++)launch(i,S); CK(cudaDeviceSynchronize());

    std::vector<cfg> C; auto add=[&](std::string n,std::vector<int> p,double h){cfg c; c.name=n;c.parts=p;c.spin=h;C.push_back(c);};
    add("whole",{1000},0); add("whole-again",{1000},0);
    add("old h.10",{4,24,144,828},.10); add("old h.075",{4,24,144,828},.075); add("old h.05",{4,24,144,828},.05);
    double hs[]={.05,.065,.08,.1}; int firsts[]={4,5,6,8,10,12,16}; double Ls[]={0,.7,1.4};
    for(double h:hs)for(int f:firsts)for(double L:Ls){ std::vector<int> p; int left=1000; double n=f; while(left>0){int k=(int)n; if(k<1)k=1; if(k>left||left-k<40)k=left; p.push_back(k); left-=k; double nn=(.683*k+.5-L)/h; if(nn<2*k)nn=2*k; n=nn;} char b[99]; int o=sprintf(b,"h%.3f L%.1f",h,L); for(int k:p)o+=sprintf(b+o," %d",k); bool dup=false; for(auto&c:C)if(c.parts==p&&c.spin==h)dup=true; if(!dup)add(b,p,h);}
    for(auto&c:C){int at=0;for(int p:c.parts){auto e=mk(at,p,0,0);c.ex.push_back(e);at+=p;}}
    for(int round=0;round<12;round++) for(auto&c:C){
        for(int r=0;r<24;r++){ double b=now(); double next=b; for(size_t i=0;i<c.parts.size();i++){ if(c.spin>0){ next=now()+c.spin*c.parts[i]; while(now()<next); } cudaGraphLaunch(c.ex[i],S);} double h=now(); cudaStreamSynchronize(S); double e=now(); if(round>=2&&r>=4){c.t.push_back(e-b);c.h.push_back(h-b);} } }
    CK(cudaGetLastError()); double w=0;
    for(auto&c:C){ std::sort(c.t.begin(),c.t.end()); std::sort(c.h.begin(),c.h.end()); size_t n=c.t.size(); if(w==0)w=c.t[n/2]; printf("%-40s median %8.2f ratio %.4f p10 %8.2f host %6.2f\n",c.name.c_str(),c.t[n/2],c.t[n/2]/w,c.t[n/10],c.h[n/2]); }
}
